// SPDX-License-Identifier: Apache-2.0
// produce and consume: what goes in comes out.
#include <gtest/gtest.h>

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

class Stream : public ::testing::Test {
 protected:
  void SetUp() override { create("1"); }
  void create(const std::string& partitions) {
    run_once({"topic", "delete", url_});
    const Answer made = run_once({"topic", "create", url_, "--partitions", partitions});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  std::vector<Json> consumed(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"consume", url_, "-o", "json"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<Json> messages;
    for (const std::string& line : run_once(words).lines()) messages.push_back(Json::parse(line));
    return messages;
  }

  Scratch scratch_;
  std::string url_ = "file:" + scratch_.path("orders");
};

TEST_F(Stream, lines_come_back_as_they_went_in) {
  const Answer sent = run_once({"produce", url_}, "hello\n\nwörld\nlast without newline");
  EXPECT_EQ(sent.exit_code, 0) << sent.err;
  EXPECT_EQ(sent.out, "sent  duplicates\n   4           0\n");
  EXPECT_EQ(run_once({"consume", url_}).out, "hello\n\nwörld\nlast without newline\n");
}

TEST_F(Stream, json_comes_back_with_everything_it_had) {
  const std::string line = R"({"id":"order-1","key":"ann","headers":[{"name":"h","value":"1"},)"
                           R"({"name":"h","value_base64":"/w=="}],"timestamp_ms":1700000000000,)"
                           R"("body":"\u0000\u0001 text"})";
  ASSERT_EQ(run_once({"produce", url_, "--json", "-o", "json"}, line + "\n").json(),
            (Json{{"sent", 1}, {"duplicates", 0}}));
  const auto messages = consumed();
  ASSERT_EQ(messages.size(), 1u);
  const Json& message = messages[0];
  EXPECT_EQ(message["partition"], 0);
  EXPECT_EQ(message["offset"], 0);
  EXPECT_EQ(message["id"], "order-1");
  EXPECT_EQ(message["key"], "ann");
  EXPECT_EQ(message["headers"], Json::parse(line)["headers"]);
  EXPECT_EQ(message["timestamp_ms"], 1700000000000);
  EXPECT_EQ(message["body"], std::string("\0\1 text", 7));
  EXPECT_EQ(message["encoding"], "text");
  EXPECT_TRUE(message["stamp"].contains("sequence"));
}

TEST_F(Stream, bytes_that_are_no_text_survive_the_way_through_json) {
  const std::string bytes = "\xff\xfe\x80";
  ASSERT_EQ(run_once({"produce", url_}, bytes + "\n").exit_code, 0);
  const auto first = consumed();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0]["encoding"], "base64");
  EXPECT_EQ(first[0]["body"], "//6A");
  ASSERT_EQ(run_once({"produce", url_, "--json"}, first[0].dump() + "\n").exit_code, 0);
  EXPECT_EQ(run_once({"consume", url_, "--from", "1"}).out, bytes + "\n");
}

TEST_F(Stream, resend_of_a_named_producer_is_recognised) {
  std::ofstream(scratch_.path("input")) << "a\nb\nc\n";
  const std::vector<std::string> words{"produce",    url_,      "--file",   scratch_.path("input"),
                                       "--producer", "nightly", "--replay", "-o",
                                       "json"};
  EXPECT_EQ(run_once(words).json(), (Json{{"sent", 3}, {"duplicates", 0}}));
  EXPECT_EQ(run_once(words).json(), (Json{{"sent", 3}, {"duplicates", 3}}));
  std::ofstream(scratch_.path("input"), std::ios::app) << "d\n";
  EXPECT_EQ(run_once(words).json(), (Json{{"sent", 4}, {"duplicates", 3}}));
  EXPECT_EQ(run_once({"consume", url_}).out, "a\nb\nc\nd\n");
}

TEST_F(Stream, named_producer_without_replay_goes_on_after_what_it_sent) {
  for (int run = 0; run < 2; ++run)
    EXPECT_EQ(run_once({"produce", url_, "--producer", "p", "-o", "json"}, "a\n").json(),
              (Json{{"sent", 1}, {"duplicates", 0}}));
  EXPECT_EQ(run_once({"consume", url_}).out, "a\na\n");
}

TEST_F(Stream, producer_that_was_killed_is_resumed_by_replay) {
  std::string input;
  for (int i = 0; i < 5000; ++i) input += "line " + std::to_string(i) + "\n";
  std::ofstream(scratch_.path("input")) << input;
  const std::vector<std::string> words{"produce",    url_,  "--file",   scratch_.path("input"),
                                       "--producer", "big", "--replay", "-o",
                                       "json"};
  ::setenv("ONCE_POINT", "log_after_write:3", 1);
  const Answer killed = run_once(words);
  ::unsetenv("ONCE_POINT");
  EXPECT_EQ(killed.exit_code, 128 + 9);
  const Answer resumed = run_once(words);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(resumed.json()["sent"], 5000);
  EXPECT_GT(resumed.json()["duplicates"], 0);
  EXPECT_EQ(run_once({"consume", url_}).out, input);
}

TEST_F(Stream, keys_and_ids_are_taken_from_the_body) {
  create("4");
  const std::string bodies =
      "{\"order\":7,\"line\":1,\"customer\":\"ann\"}\n"
      "{\"order\":7,\"line\":2,\"customer\":\"ann\"}\n";
  const Answer sent = run_once(
      {"produce", url_, "--key-from", "/customer", "--id-from", "json:/order,/line"}, bodies);
  ASSERT_EQ(sent.exit_code, 0) << sent.err;
  const auto messages = consumed();
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0]["key"], "ann");
  EXPECT_EQ(messages[0]["partition"], messages[1]["partition"]) << "the key decides";
  EXPECT_NE(messages[0]["id"], messages[1]["id"]);
  EXPECT_NE(messages[0]["id"], "");
}

TEST_F(Stream, consume_starts_and_stops_where_it_is_told) {
  ASSERT_EQ(run_once({"produce", url_}, "0\n1\n2\n3\n4\n").exit_code, 0);
  EXPECT_EQ(run_once({"consume", url_, "--from", "2"}).out, "2\n3\n4\n");
  EXPECT_EQ(run_once({"consume", url_, "--from", "1", "--count", "2"}).out, "1\n2\n");
  EXPECT_EQ(run_once({"consume", url_, "--from", "first", "--count", "0"}).out, "");
  EXPECT_EQ(run_once({"consume", url_, "--from", "end"}).out, "");
  EXPECT_EQ(run_once({"consume", url_ + "?end=stop"}).lines().size(), 5u);
}

// Who only looks is told what is there, and of no command that moves a pipeline.
TEST_F(Stream, offsets_that_are_not_there_are_a_mistake_of_the_command_line) {
  EXPECT_EQ(run_once({"consume", url_, "--from", "0"}).exit_code, 0);
  const Answer empty = run_once({"consume", url_, "--from", "1"});
  EXPECT_NE(empty.err.find("has no messages, and the next one is 0, not 1"), std::string::npos)
      << empty.err;
  ASSERT_EQ(run_once({"produce", url_}, "0\n1\n2\n3\n4\n").exit_code, 0);
  EXPECT_EQ(run_once({"consume", url_, "--from", "5"}).exit_code, 0);
  for (const char* offset : {"6", "99"}) {
    const Answer answer = run_once({"consume", url_, "--from", offset});
    EXPECT_EQ(answer.exit_code, 2) << answer.err;
    EXPECT_NE(answer.err.find("error[usage]"), std::string::npos) << answer.err;
    EXPECT_NE(answer.err.find(std::string("/0 has the offsets 0 to 4, not ") + offset),
              std::string::npos)
        << answer.err;
    EXPECT_EQ(answer.err.find("once position"), std::string::npos) << answer.err;
    EXPECT_EQ(answer.out, "");
  }
}

TEST_F(Stream, one_partition_can_be_read_alone) {
  create("3");
  std::string input;
  for (int i = 0; i < 60; ++i)
    input += R"({"key":"k)" + std::to_string(i) + R"(","body":")" + std::to_string(i) + "\"}\n";
  ASSERT_EQ(run_once({"produce", url_, "--json"}, input).exit_code, 0);
  std::size_t sum = 0;
  for (int partition = 0; partition < 3; ++partition) {
    const auto messages = consumed({"--partition", std::to_string(partition)});
    for (const Json& message : messages) EXPECT_EQ(message["partition"], partition);
    EXPECT_GT(messages.size(), 0u);
    sum += messages.size();
  }
  EXPECT_EQ(sum, 60u);
  const Answer missing = run_once({"consume", url_, "--partition", "3"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("no partition 3"), std::string::npos) << missing.err;
}

TEST_F(Stream, follow_shows_what_another_process_sends) {
  ASSERT_EQ(run_once({"produce", url_}, "before\n").exit_code, 0);
  Program follower({"consume", url_, "--from", "end", "--follow", "--count", "2"});
  Program sender({"produce", url_});
  // It starts at the end as it finds it, so "one" may come before it looks: send until it saw two.
  sender.feed("one\n");
  ::usleep(300'000);
  sender.feed("two\n");
  ::usleep(300'000);
  sender.feed("three\n");
  const Answer seen = follower.wait();
  EXPECT_EQ(seen.exit_code, 0) << seen.err;
  ASSERT_EQ(seen.lines().size(), 2u);
  EXPECT_EQ(seen.out.find("before"), std::string::npos);
  EXPECT_EQ(sender.wait().exit_code, 0);
}

TEST_F(Stream, lines_that_are_typed_are_sent_at_once) {
  Program sender({"produce", url_});
  sender.feed("first\n");
  Program reader({"consume", url_, "--follow", "--count", "1"});
  EXPECT_EQ(reader.wait().out, "first\n");
  EXPECT_EQ(run_once({"consume", url_}).out, "first\n") << "the sender still waits for input";
  EXPECT_EQ(sender.wait().exit_code, 0);
}

TEST_F(Stream, table_shows_control_characters_as_text) {
  ASSERT_EQ(run_once({"produce", url_, "--json"}, R"({"id":"i","key":"k","body":"a\u001b[31mb"})"
                                                  "\n")
                .exit_code,
            0);
  const Answer table = run_once({"consume", url_, "-o", "table"});
  EXPECT_EQ(table.lines().size(), 2u);
  EXPECT_NE(table.out.find("a\\x1b[31mb"), std::string::npos) << table.out;
}

}  // namespace
}  // namespace once
