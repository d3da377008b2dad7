// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "program.h"
#include "testing/scratch.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::run_once;
using testing::Scratch;

TEST(Help, shows_a_newcomer_where_to_start) {
  const Answer help = run_once({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* word : {"once demo", "once produce", "once consume", "Exit codes"})
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  EXPECT_EQ(help.out.find("demo-role"), std::string::npos) << "not for users";
  for (const char* command : {"topic", "produce", "consume", "demo"}) {
    const Answer one = run_once({command, "--help"});
    EXPECT_EQ(one.exit_code, 0);
    EXPECT_NE(one.out.find("Usage: once " + std::string(command)), std::string::npos) << one.out;
  }
}

TEST(Help, version_is_told) {
  const Answer version = run_once({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out.rfind("once ", 0), 0u) << version.out;
}

TEST(Topic, is_created_once_however_often_it_is_asked_for) {
  Scratch scratch;
  const std::string url = "file:" + scratch.path("data/orders");
  const Answer first =
      run_once({"topic", "create", url, "--partitions", "3", "--gaps", "hold", "-o", "json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Answer second =
      run_once({"topic", "create", url, "--partitions", "3", "--gaps", "hold", "-o", "json"});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(first.out, second.out);
  EXPECT_EQ(first.json()["partitions"].size(), 3u);
  EXPECT_EQ(first.json()["gaps"], "hold");
}

TEST(Topic, is_not_made_of_a_directory_of_topics) {
  Scratch scratch;
  ASSERT_EQ(run_once({"topic", "create", "file:" + scratch.path("data/orders")}).exit_code, 0);
  const Answer refused =
      run_once({"topic", "create", "file:" + scratch.path("data"), "-o", "json"});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_EQ(refused.error()["tag"], "foreign") << refused.err;
  EXPECT_NE(refused.err.find("name one in it: file:" + scratch.path("data/NAME")),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(run_once({"topic", "ls", "file:" + scratch.directory(), "-o", "json"}).json(),
            testing::Json::array());
}

TEST(Topic, with_other_settings_is_not_the_same_topic) {
  Scratch scratch;
  const std::string url = "file:" + scratch.path("orders");
  ASSERT_EQ(run_once({"topic", "create", url}).exit_code, 0);
  const Answer other = run_once({"topic", "create", url, "--partitions", "2", "-o", "json"});
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_EQ(other.out, "");
  EXPECT_EQ(other.error()["remedy"], "stop");
}

TEST(Topic, settings_are_kept_and_shown) {
  Scratch scratch;
  const std::string url = "file:" + scratch.path("orders");
  ASSERT_EQ(run_once({"topic", "create", url, "--segment-bytes", "1048576", "--retention-ms",
                      "86400000", "--retention-bytes", "10485760", "--gaps", "accept"})
                .exit_code,
            0);
  const Json shown = run_once({"topic", "show", url, "-o", "json"}).json();
  EXPECT_EQ(shown["topic"], "orders");
  EXPECT_EQ(shown["segment_bytes"], 1048576);
  EXPECT_EQ(shown["retention_ms"], 86400000);
  EXPECT_EQ(shown["retention_bytes"], 10485760);
  EXPECT_EQ(shown["gaps"], "accept");
  EXPECT_EQ(shown["messages"], 0);
}

TEST(Topic, list_has_every_topic_in_each_format) {
  Scratch scratch;
  const std::string directory = "file:" + scratch.directory();
  EXPECT_EQ(run_once({"topic", "ls", directory, "-o", "json"}).json(), Json::array());
  ASSERT_EQ(run_once({"topic", "create", directory + "/b"}).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "create", directory + "/a"}).exit_code, 0);
  const Json listed = run_once({"topic", "ls", directory, "-o", "json"}).json();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0]["topic"], "a");
  EXPECT_EQ(listed[1]["topic"], "b");
  EXPECT_EQ(run_once({"topic", "ls", directory, "-o", "jsonl"}).lines().size(), 2u);
  EXPECT_EQ(run_once({"topic", "ls", directory}).lines().size(), 3u) << "a head and two rows";
}

TEST(Topic, deleted_twice_is_gone_once) {
  Scratch scratch;
  const std::string url = "file:" + scratch.path("orders");
  ASSERT_EQ(run_once({"topic", "create", url}).exit_code, 0);
  EXPECT_EQ(run_once({"topic", "delete", url}).exit_code, 0);
  EXPECT_EQ(run_once({"topic", "delete", url}).exit_code, 0);
  EXPECT_EQ(run_once({"topic", "show", url}).exit_code, 3);
  EXPECT_EQ(run_once({"produce", url}, "x\n").exit_code, 3);
}

TEST(Topic, messages_sent_without_a_name_leave_no_producer_behind) {
  Scratch scratch;
  const std::string url = "file:" + scratch.path("orders");
  ASSERT_EQ(run_once({"topic", "create", url}).exit_code, 0);
  for (int run = 0; run < 5; ++run) ASSERT_EQ(run_once({"produce", url}, "x\ny\n").exit_code, 0);
  ASSERT_EQ(run_once({"produce", url, "--producer", "p"}, "z\n").exit_code, 0);
  const Json shown = run_once({"topic", "show", url, "-o", "json"}).json();
  EXPECT_EQ(shown["messages"], 11);
  EXPECT_EQ(shown["partitions"][0]["producers"], 1);
}

// 60 messages in one group, which is larger than a segment, with a retention of an hour.
TEST(Topic, a_group_larger_than_a_segment_is_there_afterwards) {
  Scratch scratch;
  const std::string url = "file:" + scratch.path("orders");
  ASSERT_EQ(
      run_once({"topic", "create", url, "--segment-bytes", "4096", "--retention-ms", "3600000"})
          .exit_code,
      0);
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += "m" + std::to_string(i) + std::string(100, 'x') + "\n";
  for (int run = 1; run <= 3; ++run) {
    ASSERT_EQ(run_once({"produce", url, "--producer", "p"}, lines).exit_code, 0);
    const Answer read = run_once({"consume", url});
    EXPECT_EQ(read.exit_code, 0) << read.err;
    EXPECT_EQ(read.lines().size(), static_cast<std::size_t>(60 * run));
  }
}

TEST(Topic, deletes_nothing_while_there_is_something_that_is_not_its_own) {
  Scratch scratch;
  const std::string url = "file:" + scratch.path("orders");
  ASSERT_EQ(run_once({"topic", "create", url}).exit_code, 0);
  ASSERT_EQ(run_once({"produce", url}, "x\n").exit_code, 0);
  std::filesystem::create_directory(scratch.path("orders/2023"));
  const Answer refused = run_once({"topic", "delete", url, "-o", "json"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_EQ(refused.error()["tag"], "foreign");
  EXPECT_EQ(run_once({"consume", url}).lines().size(), 1u);
  std::filesystem::remove(scratch.path("orders/2023"));
  EXPECT_EQ(run_once({"topic", "delete", url}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(scratch.path("orders")));
}

TEST(Topic, whose_segments_are_gone_is_corrupt_until_the_loss_is_accepted) {
  Scratch scratch;
  const std::string url = "file:" + scratch.path("orders");
  ASSERT_EQ(run_once({"topic", "create", url}).exit_code, 0);
  ASSERT_EQ(run_once({"produce", url}, "x\ny\n").exit_code, 0);
  std::filesystem::remove(scratch.path("orders/0/00000000000000000000.log"));
  for (const char* command : {"consume", "produce"})
    EXPECT_EQ(run_once({command, url}, "z\n").exit_code, 7) << command;
  EXPECT_EQ(run_once({"topic", "show", url}).exit_code, 7);
  const Json shown = run_once({"topic", "repair", url, "-o", "json"}).json();
  EXPECT_EQ(shown["repaired"], false);
  EXPECT_EQ(shown["partitions"][0]["lost"], 2);
  EXPECT_EQ(shown["partitions"][0]["producers"], "forgotten");
  EXPECT_EQ(run_once({"produce", url}, "z\n").exit_code, 7);
  ASSERT_EQ(run_once({"topic", "repair", url, "--accept-loss"}).exit_code, 0);
  EXPECT_EQ(run_once({"produce", url}, "z\n").exit_code, 0);
  EXPECT_EQ(run_once({"consume", url}).out, "z\n");
}

TEST(Topic, that_is_damaged_is_repaired_when_the_loss_is_accepted) {
  Scratch scratch;
  const std::string url = "file:" + scratch.path("orders");
  ASSERT_EQ(run_once({"topic", "create", url, "--segment-bytes", "4096"}).exit_code, 0);
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "message " + std::to_string(i) + "\n";
  for (int i = 0; i < 4; ++i) ASSERT_EQ(run_once({"produce", url}, lines).exit_code, 0);
  const std::string store = "sqlite:" + scratch.path("state.db");
  ASSERT_EQ(run_once({"topic", "create", url + ".copy"}).exit_code, 0);
  ASSERT_EQ(run_once({"bridge", url, url + ".copy", "--state", store}).exit_code, 0);
  std::set<std::string> segments;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path("orders/0")))
    if (entry.path().extension() == ".log") segments.insert(entry.path());
  ASSERT_GE(segments.size(), 2u);
  std::filesystem::resize_file(*segments.rbegin(),
                               std::filesystem::file_size(*segments.rbegin()) - 50);
  const Answer shown = run_once({"topic", "show", url});
  EXPECT_EQ(shown.exit_code, 7) << shown.out;
  EXPECT_NE(shown.out.find("partition 0 is damaged"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("once topic repair"), std::string::npos) << shown.out;
  const Answer listed = run_once({"topic", "ls", "file:" + scratch.path("")});
  EXPECT_EQ(listed.exit_code, 7);
  EXPECT_NE(listed.out.find("damaged"), std::string::npos) << listed.out;
  const Answer looked = run_once({"topic", "repair", url, "-o", "json"});
  EXPECT_EQ(looked.exit_code, 7) << "it is still damaged";
  const Answer repaired = run_once({"topic", "repair", url, "--accept-loss", "-o", "json"});
  ASSERT_EQ(repaired.exit_code, 0) << repaired.err;
  const Json told = repaired.json();
  const Json& partition = told["partitions"][0];
  const auto first_lost = partition["lost_ranges"][0]["first"].get<std::size_t>();
  EXPECT_EQ(partition["lost_ranges"][0]["end"], 400);
  EXPECT_EQ(partition["set_aside"].size(), 2u) << "the segment and the watermark";
  for (const Json& path : partition["set_aside"])
    EXPECT_TRUE(std::filesystem::exists(path.get<std::string>())) << path;
  EXPECT_EQ(told["renews_identity"], true);
  EXPECT_EQ(run_once({"consume", url}).lines().size(), first_lost);
  ASSERT_EQ(run_once({"produce", url}, "after\n").exit_code, 0);
  EXPECT_EQ(run_once({"consume", url}).lines().size(), first_lost + 1);
  // Whoever had read more must not skip what is written there now.
  const Answer reader = run_once({"bridge", url, url + ".copy", "--state", store});
  EXPECT_EQ(reader.exit_code, 3);
  EXPECT_NE(reader.err.find("error[gone]"), std::string::npos) << reader.err;
}

}  // namespace
}  // namespace once
