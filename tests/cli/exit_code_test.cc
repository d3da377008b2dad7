// SPDX-License-Identifier: Apache-2.0
// Every exit code, and that an error is told on stderr while stdout stays clean.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "program.h"
#include "testing/scratch.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::Program;
using testing::run_once;
using testing::Scratch;

class ExitCode : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(run_once({"topic", "create", url_}).exit_code, 0); }

  // A place where nobody may write, not even the superuser.
  std::string unwritable() {
    if (::getuid() == 0) return "/sys/once";
    const std::string path = scratch_.path("closed");
    ::mkdir(path.c_str(), 0500);
    return path + "/once";
  }
  // The largest file of the topic: its messages.
  std::string largest_file() {
    std::filesystem::path largest;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch_.path("orders")))
      if (entry.is_regular_file() &&
          (largest.empty() || entry.file_size() > std::filesystem::file_size(largest)))
        largest = entry.path();
    return largest.string();
  }

  void fill() {
    std::string input;
    for (int i = 0; i < 2000; ++i) input += "message " + std::to_string(i) + "\n";
    for (int i = 0; i < 2; ++i) ASSERT_EQ(run_once({"produce", url_}, input).exit_code, 0);
  }

  Scratch scratch_;
  std::string url_ = "file:" + scratch_.path("orders");
};

void expect_error(const Answer& run, int exit_code, const std::string& tag) {
  EXPECT_EQ(run.exit_code, exit_code) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err.rfind("once: error[" + tag + "]: ", 0), 0u) << run.err;
}

TEST_F(ExitCode, usage_is_2) {
  expect_error(run_once({}), 2, "usage");
  expect_error(run_once({"topic"}), 2, "usage");
  expect_error(run_once({"frobnicate"}), 2, "usage");
  expect_error(run_once({"consume", url_, "--frobnicate"}), 2, "usage");
  expect_error(run_once({"consume", url_, "-o", "xml"}), 2, "usage");
  expect_error(run_once({"consume", url_, "--from", "yesterday"}), 2, "usage");
  expect_error(run_once({"consume", url_, "--count", "-1"}), 2, "usage");
  expect_error(run_once({"topic", "create", url_, "--partitions", "0"}), 2, "usage");
  expect_error(run_once({"topic", "create", url_, "--gaps", "jump"}), 2, "usage");
  expect_error(run_once({"produce", url_, "--replay"}), 2, "usage");
  expect_error(run_once({"produce", url_, "--id-from", "jsn:/a"}), 2, "usage");
  expect_error(run_once({"produce", url_, "--id-from", "coordinates"}), 2, "usage");
  expect_error(run_once({"produce", url_, "--key-from", "customer"}), 2, "usage");
  expect_error(run_once({"demo", "--duplicates", "2"}), 2, "usage");
  expect_error(run_once({"demo", "--messages", "0"}), 2, "usage");
  expect_error(run_once({"consume", url_ + "?end=stop", "--follow"}), 2, "usage");
}

TEST_F(ExitCode, wrong_url_is_2_and_tells_what_is_known) {
  expect_error(run_once({"consume", "orders"}), 2, "url");
  expect_error(run_once({"consume", "file:"}), 2, "url");
  expect_error(run_once({"produce", url_ + "?x=y"}), 2, "url");
  const Answer wrong = run_once({"consume", "fiel:data/orders"});
  expect_error(wrong, 2, "url");
  EXPECT_NE(wrong.err.find("did you mean \"file:\""), std::string::npos) << wrong.err;
}

TEST_F(ExitCode, bad_input_line_is_2_and_tells_the_line_and_what_was_sent) {
  const Answer bad =
      run_once({"produce", url_, "--json"}, "{\"body\":\"a\"}\n{\"body\":\"b\"}\nbroken\n");
  expect_error(bad, 2, "input");
  EXPECT_NE(bad.err.find("line 3: this is not JSON; 2 messages before it were sent"),
            std::string::npos)
      << bad.err;
  EXPECT_EQ(run_once({"consume", url_}).out, "a\nb\n") << "what it said was sent is there";
}

TEST_F(ExitCode, message_that_can_never_succeed_is_6) {
  const Answer bad =
      run_once({"produce", url_, "--id-from", "json:/id"}, "{\"id\":1}\n{\"no\":2}\n");
  EXPECT_EQ(bad.exit_code, 6) << bad.err;
  EXPECT_NE(bad.err.find("line 2: "), std::string::npos) << bad.err;
  EXPECT_NE(bad.err.find("json:/id"), std::string::npos) << "the rule is named: " << bad.err;
  EXPECT_NE(bad.err.find("1 message before it was sent"), std::string::npos) << bad.err;
}

TEST_F(ExitCode, errors_are_json_too_when_json_was_asked_for) {
  const Answer run = run_once({"consume", "file:" + scratch_.path("nothing"), "-o", "json"});
  expect_error(run, 3, "missing");
  EXPECT_EQ(run.error()["tag"], "missing");
  EXPECT_EQ(run.error()["remedy"], "stop");
  EXPECT_EQ(run.error()["exit_code"], 3);
  EXPECT_EQ(run_once({"frobnicate", "-o", "json"}).error()["tag"], "usage");
}

TEST_F(ExitCode, second_writer_of_a_topic_is_busy_and_that_is_3) {
  Program first({"produce", url_});
  first.feed("mine\n");
  Program reader({"consume", url_, "--follow", "--count", "1"});
  ASSERT_EQ(reader.wait().out, "mine\n") << "reading is allowed, and the first has begun";
  expect_error(run_once({"produce", url_}, "yours\n"), 3, "busy");
  EXPECT_EQ(run_once({"topic", "delete", url_}).exit_code, 3) << "it is being written";
  EXPECT_EQ(first.wait().exit_code, 0);
  EXPECT_EQ(run_once({"produce", url_}, "yours\n").exit_code, 0) << "free again";
  EXPECT_EQ(run_once({"consume", url_}).out, "mine\nyours\n");
}

TEST_F(ExitCode, unwritable_directory_is_3) {
  expect_error(run_once({"topic", "create", "file:" + unwritable() + "/orders"}), 3, "denied");
  expect_error(run_once({"demo", "--dir", unwritable()}), 3, "denied");
  std::ofstream(scratch_.path("a_file")) << "x";
  EXPECT_EQ(run_once({"topic", "create", "file:" + scratch_.path("a_file/orders")}).exit_code, 3);
}

TEST_F(ExitCode, foreign_files_in_place_of_a_topic_are_3_and_stay_untouched) {
  std::filesystem::create_directory(scratch_.path("photos"));
  std::ofstream(scratch_.path("photos/holiday.jpg")) << "not a segment";
  for (const char* command : {"consume", "produce"})
    EXPECT_EQ(run_once({command, "file:" + scratch_.path("photos")}).exit_code, 3);
  EXPECT_NE(run_once({"topic", "delete", "file:" + scratch_.path("photos")}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(scratch_.path("photos/holiday.jpg")));
}

TEST_F(ExitCode, full_disk_is_4) {
  ASSERT_EQ(run_once({"produce", url_}, "a\n").exit_code, 0);
  expect_error(run_once({"consume", url_}, "", "/dev/full"), 4, "full");
}

// Reading address 0 of a process is an input/output error that every Linux has.
TEST_F(ExitCode, unknown_outcome_is_5) {
  const Answer unknown = run_once({"produce", url_, "--file", "/proc/self/mem", "-o", "json"});
  EXPECT_EQ(unknown.exit_code, 5) << unknown.err;
  EXPECT_EQ(unknown.error()["remedy"], "recheck");
}

TEST_F(ExitCode, corrupt_data_is_7) {
  fill();
  std::fstream file(largest_file(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(20000);
  const char old = static_cast<char>(file.get());
  file.seekp(20000);
  file.put(static_cast<char>(old ^ 0x40));
  file.close();
  const Answer read = run_once({"consume", url_, "-o", "json"});
  EXPECT_EQ(read.exit_code, 7) << read.err;
  EXPECT_EQ(read.error()["tag"], "corrupt");
}

TEST_F(ExitCode, file_that_was_cut_below_what_was_acknowledged_is_7) {
  fill();
  std::filesystem::resize_file(largest_file(), 20000);
  EXPECT_EQ(run_once({"consume", url_}).exit_code, 7);
  EXPECT_EQ(run_once({"produce", url_}, "more\n").exit_code, 7);
  EXPECT_EQ(run_once({"consume", url_}).exit_code, 7) << "nothing was repaired by forgetting";
}

TEST_F(ExitCode, garbage_in_place_of_messages_is_an_error_and_never_a_message) {
  fill();
  std::ofstream(largest_file()) << std::string(50000, 'x');
  for (const char* command : {"consume", "produce"}) {
    const Answer answer = run_once({command, url_});
    EXPECT_TRUE(answer.exit_code == 3 || answer.exit_code == 7) << answer.exit_code << answer.err;
    EXPECT_EQ(answer.out, "");
  }
}

TEST_F(ExitCode, unknown_failpoint_is_2) {
  ::setenv("ONCE_POINT", "nowhere", 1);
  const Answer run = run_once({"topic", "show", url_});
  ::unsetenv("ONCE_POINT");
  expect_error(run, 2, "usage");
}

}  // namespace
}  // namespace once
