// SPDX-License-Identifier: Apache-2.0
// Reading a topic as people are used to: the last messages, from a time, in a format; what is sent
// with a key, headers and a partition.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "program.h"
#include "testing/scratch.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::run_once;
using testing::Scratch;
using Strings = std::vector<std::string>;

class Look : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run_once({"topic", "create", url_, "--partitions", "2"}).exit_code, 0);
  }
  Answer produce(const std::string& input, Strings more = {}) {
    Strings words{"produce", url_};
    words.insert(words.end(), more.begin(), more.end());
    return run_once(words, input);
  }
  Answer consume(Strings more = {}) {
    Strings words{"consume", url_};
    words.insert(words.end(), more.begin(), more.end());
    return run_once(words);
  }
  static std::string timed(const std::string& body, std::int64_t ms) {
    return Json{{"key", "k"}, {"body", body}, {"timestamp_ms", ms}}.dump() + "\n";
  }

  Scratch scratch_;
  std::string url_ = "file:" + scratch_.path("orders");
};

TEST_F(Look, the_last_messages_of_each_partition) {
  ASSERT_EQ(produce("a\nb\nc\n", {"--partition", "0"}).exit_code, 0);
  ASSERT_EQ(produce("x\ny\n", {"--partition", "1"}).exit_code, 0);
  EXPECT_EQ(consume({"--last", "2", "--partition", "0"}).out, "b\nc\n");
  EXPECT_EQ(consume({"--last", "1"}).lines().size(), 2u);
  EXPECT_EQ(consume({"--last", "99"}).lines().size(), 5u) << "there are not more than there are";
  EXPECT_EQ(consume({"--last", "2", "--from", "1"}).exit_code, 2);
  EXPECT_EQ(consume({"--last", "0"}).exit_code, 2);
}

TEST_F(Look, from_a_time_on) {
  ASSERT_EQ(produce(timed("old", 1'794'787'200'000) + timed("new", 1'794'787'260'000), {"--json"})
                .exit_code,
            0);
  EXPECT_EQ(consume({"--from", "2026-11-16T00:00:30Z"}).out, "new\n");
  EXPECT_EQ(consume({"--from", "2026-11-16T00:00:00Z"}).out, "old\nnew\n");
  EXPECT_EQ(consume({"--from", "2026-11-16T00:02:00Z"}).out, "");
  ASSERT_EQ(produce("present\n").exit_code, 0);
  EXPECT_EQ(consume({"--from", "-1h"}).out.find("old"), std::string::npos);
  EXPECT_NE(consume({"--from", "-1h"}).out.find("present"), std::string::npos);
}

TEST_F(Look, in_the_format_that_is_asked_for) {
  ASSERT_EQ(produce("ann:5\n", {"--key-delimiter", ":", "--partition", "1", "--header", "kind=paid",
                                "--header", "n=7"})
                .exit_code,
            0);
  EXPECT_EQ(consume({"--format", "%t/%p@%o %k=%s [%h] %K%%\\n"}).out,
            "orders/1@0 ann=5 [kind=paid,n=7] 3%\n");
  EXPECT_EQ(consume({"--format", "%x"}).exit_code, 2);
  EXPECT_EQ(consume({"--format", "%s", "-o", "json"}).exit_code, 2);
}

TEST_F(Look, only_what_has_a_key_or_a_header) {
  ASSERT_EQ(produce("ann:1\nben:2\n", {"--key-delimiter", ":"}).exit_code, 0);
  ASSERT_EQ(produce("ann:3\n", {"--key-delimiter", ":", "--header", "kind=test"}).exit_code, 0);
  ASSERT_EQ(produce("4\n").exit_code, 0);
  EXPECT_EQ(consume({"--key", "ann"}).out, "1\n3\n");
  EXPECT_EQ(consume({"--key", ""}).out, "") << "no key is not the empty key";
  EXPECT_EQ(consume({"--header", "kind"}).out, "3\n");
  EXPECT_EQ(consume({"--header", "kind=test"}).out, "3\n");
  EXPECT_EQ(consume({"--header", "kind=paid"}).out, "");
  EXPECT_EQ(consume({"--key", "ann", "--count", "1"}).out, "1\n") << "what is shown is counted";
}

TEST_F(Look, tombstones_and_keys_are_sent_from_lines) {
  ASSERT_EQ(produce("ann:\nben:x:y\n", {"--key-delimiter", ":", "--tombstone"}).exit_code, 0);
  std::vector<Json> messages;
  for (const std::string& line : consume({"-o", "json"}).lines())
    messages.push_back(Json::parse(line));
  ASSERT_EQ(messages.size(), 2u);
  for (const Json& message : messages) {
    const bool is_ann = message["key"] == "ann";
    EXPECT_EQ(message["body"], is_ann ? Json() : Json("x:y"));
  }
  const Answer keyless = produce("no delimiter\n", {"--key-delimiter", ":"});
  EXPECT_EQ(keyless.exit_code, 2) << keyless.err;
  EXPECT_NE(keyless.err.find("error[input]: line 1: there is no key"), std::string::npos);
  EXPECT_EQ(produce("x\n", {"--partition", "2"}).exit_code, 2);
  EXPECT_EQ(produce("x\n", {"--header", "kind"}).exit_code, 2);
}

// --- What the command line says of itself

std::string error_of(Strings words) { return run_once(std::move(words)).err; }
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Words, a_command_or_flag_that_there_is_not_is_named_with_what_may_be_meant) {
  EXPECT_TRUE(has(error_of({"consum"}), "no command \"consum\"; did you mean \"consume\"?"));
  EXPECT_TRUE(has(error_of({"ledger", "shwo"}), "no command \"shwo\"; did you mean \"show\"?"));
  EXPECT_TRUE(has(error_of({"consume", "file:x/y", "--conut", "5"}),
                  "once consume has no flag \"--conut\"; did you mean \"--count\"?"));
  EXPECT_TRUE(has(error_of({"consume", "file:x/y", "-n", "5"}),
                  "once consume has no flag \"-n\"; see once consume --help"));
  EXPECT_TRUE(has(error_of({"produce", "file:x/y", "-K", ":"}),
                  "once produce has no flag \"-K\"; did you mean --key-from or --key-delimiter?"));
  EXPECT_TRUE(has(error_of({"run", "-x"}), "once run has no flag \"-x\""));
  EXPECT_TRUE(has(error_of({"-x"}), "once has no flag \"-x\""));
  EXPECT_TRUE(has(error_of({"consume", "file:x/y", "--from", "-1h", "more"}),
                  "takes fewer words than were given"))
      << "a time before now is no flag";
  EXPECT_TRUE(has(error_of({"ledger"}), "once ledger needs a command: ls, show, force"));
  EXPECT_TRUE(has(error_of({}), "once needs a command"));
}

TEST(Words, what_a_flag_accepts_is_said_in_words) {
  EXPECT_TRUE(has(error_of({"consume", "file:x/y", "-o", "xml"}),
                  "--output: must be json, jsonl, table, not \"xml\""));
  EXPECT_TRUE(has(error_of({"consume", "file:x/y", "--count", "x"}),
                  "--count: must be a whole number of 0 or more, not \"x\""));
  EXPECT_TRUE(has(error_of({"audit", "file:x/y", "--memory", "0"}),
                  "--memory: must be a whole number from 1 to 65,536, not \"0\""));
  EXPECT_TRUE(has(error_of({"park", "show", "abc", "--store", "sqlite:x"}),
                  "NUMBER must be a number, not \"abc\""));
}

TEST(Words, help_is_a_command) {
  const Answer all = run_once({"help"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_EQ(all.out, run_once({"--help"}).out);
  EXPECT_EQ(run_once({"help", "park", "replay"}).out, run_once({"park", "replay", "--help"}).out);
  const Answer none = run_once({"help", "prak"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(has(none.err, "did you mean \"park\"?")) << none.err;
  EXPECT_EQ(run_once({"-V"}).out, run_once({"--version"}).out);
  EXPECT_EQ(run_once({"-V"}).exit_code, 0);
}

TEST_F(Look, a_body_that_is_not_json_is_said_to_be_that) {
  EXPECT_TRUE(has(produce("hello\n", {"--id", "json:/a"}).err, "the body is not JSON"));
  EXPECT_TRUE(has(produce("{\"a\":\n", {"--id", "json:/a"}).err, "the body is not JSON"));
  EXPECT_TRUE(has(produce("{\"b\":1}\n", {"--id", "json:/a"}).err, "the body has no value at /a"));
}

}  // namespace
}  // namespace once
