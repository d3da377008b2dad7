// SPDX-License-Identifier: Apache-2.0
// once audit and once bridge: what is in a topic, and moving it without a loss or a duplicate.
#include <gtest/gtest.h>
#include <once/open.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
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

class Bridge : public ::testing::Test {
 protected:
  using Lines = std::vector<std::string>;

  void SetUp() override {
    ::unsetenv("ONCE_POINT");
    ASSERT_EQ(run_once({"topic", "create", from_, "--partitions", "2"}).exit_code, 0);
    ASSERT_EQ(run_once({"topic", "create", to_, "--partitions", "3"}).exit_code, 0);
  }
  void TearDown() override { ::unsetenv("ONCE_POINT"); }

  static std::string line(int number) {
    const std::string text = std::to_string(number);
    return Json{{"id", "m" + text},
                {"key", "k" + std::to_string(number % 5)},
                {"headers", {{"n", text}}},
                {"timestamp_ms", 1'700'000'000'000 + number},
                {"body", R"({"order":)" + text + "}"}}
               .dump() +
           "\n";
  }
  void send(const std::string& url, int first, int count) {
    std::string lines;
    for (int i = first; i < first + count; ++i) lines += line(i);
    const Answer sent = run_once({"produce", url, "--json"}, lines);
    ASSERT_EQ(sent.exit_code, 0) << sent.err;
  }
  Answer bridge(Lines more = {}) {
    Lines words{"bridge", from_, to_, "--state", "sqlite:" + scratch_.path("state.db"),
                "-o",     "json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_once(words);
  }
  // What was sent, by key and in order, without its place.
  static std::map<std::string, Lines> content(const std::string& url) {
    std::map<std::string, Lines> found;
    for (const std::string& text : run_once({"consume", url, "-o", "json"}).lines()) {
      Json message = Json::parse(text);
      for (const char* place : {"partition", "offset", "stamp"}) message.erase(place);
      found[message["key"].is_null() ? "" : message["key"]].push_back(message.dump());
    }
    return found;
  }

  Scratch scratch_;
  const std::string from_ = "file:" + scratch_.path("from");
  const std::string to_ = "file:" + scratch_.path("to");
};

TEST_F(Bridge, tombstones_and_absent_keys_and_header_values_arrive_as_they_were) {
  const std::string lines =
      R"({"id":"gone","key":"k0","body":null,"timestamp_ms":1700000000000})"
      "\n"
      R"({"id":"empty","key":"","body":"","timestamp_ms":1700000000001})"
      "\n"
      R"({"id":"keyless","key":null,"body":"b","headers":{"none":null,"empty":""}})"
      "\n";
  ASSERT_EQ(run_once({"produce", from_, "--json"}, lines).exit_code, 0);
  const Answer done = bridge();
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.json()["copied"], 3);
  std::map<std::string, Json> copies;
  for (const std::string& text : run_once({"consume", to_, "-o", "json"}).lines()) {
    Json message = Json::parse(text);
    copies[message["id"]] = message;
  }
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_TRUE(copies["gone"]["body"].is_null());
  EXPECT_EQ(copies["empty"]["body"], "");
  EXPECT_EQ(copies["empty"]["key"], "");
  EXPECT_TRUE(copies["keyless"]["key"].is_null());
  EXPECT_TRUE(copies["keyless"]["headers"][0]["value"].is_null());
  EXPECT_EQ(copies["keyless"]["headers"][1]["value"], "");
}

// The audit compares what messages say: an id that arrives with an empty body instead of none is
// not the copy.
TEST_F(Bridge, the_audit_tells_absent_from_empty) {
  ASSERT_EQ(run_once({"produce", from_, "--json"}, R"({"id":"gone","key":"k","body":null})"
                                                   "\n")
                .exit_code,
            0);
  ASSERT_EQ(bridge().exit_code, 0);
  ASSERT_EQ(run_once({"produce", from_, "--json"}, R"({"id":"more","key":"k","body":null})"
                                                   "\n")
                .exit_code,
            0);
  ASSERT_EQ(run_once({"produce", to_, "--json"}, R"({"id":"more","key":"k","body":""})"
                                                 "\n")
                .exit_code,
            0);
  const Answer audited = bridge();
  EXPECT_EQ(audited.json()["copied"], 2);
  EXPECT_EQ(audited.json()["others"], 1);
}

TEST_F(Bridge, copies_everything_with_all_it_has_in_the_order_of_its_keys) {
  send(from_, 0, 100);
  const Answer first = bridge();
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.json(), (Json{{"copied", 100},
                                {"missing", 0},
                                {"doubled", 0},
                                {"others", 0},
                                {"duplicates", 0},
                                {"parked", 0},
                                {"without_id", 0},
                                {"ok", true}}));
  EXPECT_EQ(content(to_), content(from_));
  send(from_, 100, 20);
  EXPECT_EQ(bridge().json()["copied"], 120);
  EXPECT_EQ(content(to_), content(from_));
}

TEST_F(Bridge, killed_at_any_point_it_goes_on_where_it_was) {
  int sent = 0;
  for (const char* point :
       {"lane_after_handler", "lane_before_commit", "lane_after_commit", "lane_after_ack",
        "relay_after_assign", "relay_after_append", "relay_after_sent"}) {
    send(from_, sent, 30);
    sent += 30;
    ::setenv("ONCE_POINT", point, 1);
    EXPECT_EQ(bridge().exit_code, 128 + SIGKILL) << point;
    ::unsetenv("ONCE_POINT");
    const Answer again = bridge();
    ASSERT_EQ(again.exit_code, 0) << point << again.out << again.err;
    EXPECT_EQ(again.json()["copied"], sent);
    EXPECT_EQ(content(to_), content(from_)) << point;
  }
}

TEST_F(Bridge, with_an_id_rule_what_was_sent_twice_is_copied_once) {
  send(from_, 0, 50);
  send(from_, 0, 50);
  const Answer answer = bridge({"--id", "json:/order"});
  ASSERT_EQ(answer.exit_code, 0) << answer.out << answer.err;
  EXPECT_EQ(answer.json()["copied"], 50);
  EXPECT_EQ(run_once({"audit", from_}).exit_code, 1);
  EXPECT_EQ(run_once({"audit", to_}).exit_code, 0);
  Lines bodies;
  for (const auto& [key, messages] : content(to_))
    for (const std::string& text : messages) bodies.push_back(Json::parse(text)["body"]);
  EXPECT_EQ(bodies.size(), 50u);
}

// The destination is not searched before; what is there twice afterwards is told.
TEST_F(Bridge, ids_that_the_destination_had_before_are_doubled_and_no_success) {
  send(from_, 0, 3);
  send(to_, 0, 2);
  const Answer answer = bridge({"--id", "carried"});
  EXPECT_EQ(answer.exit_code, 1) << answer.out << answer.err;
  EXPECT_EQ(answer.json()["doubled"], 2);
  EXPECT_EQ(answer.json()["missing"], 0);
  std::size_t count = 0;
  for (const auto& [key, messages] : content(to_)) count += messages.size();
  EXPECT_EQ(count, 5u) << "all that was there, and each of the three once more";
}

TEST_F(Bridge, goes_on_however_the_parameters_and_paths_of_its_urls_are_written) {
  send(from_, 0, 3);
  ASSERT_EQ(bridge().exit_code, 0);
  for (const std::string& from : {from_ + "?end=stop", "file:" + scratch_.path("./to/../from")}) {
    const Answer again = run_once({"bridge", from, "file:" + scratch_.path("from/../to"), "--state",
                                   "sqlite:" + scratch_.path("state.db"), "-o", "json"});
    EXPECT_EQ(again.exit_code, 0) << from << again.out << again.err;
    EXPECT_EQ(again.json()["copied"], 3);
    EXPECT_EQ(again.json()["doubled"], 0);
  }
  EXPECT_EQ(content(to_), content(from_));
}

TEST_F(Bridge, its_audit_finds_what_is_missing_and_what_is_doubled) {
  send(from_, 0, 10);
  ASSERT_EQ(bridge().exit_code, 0);
  send(to_, 3, 1);
  send(to_, 77, 1);
  const Answer doubled = bridge();
  EXPECT_EQ(doubled.exit_code, 1);
  EXPECT_EQ(doubled.json()["doubled"], 1);
  EXPECT_EQ(doubled.json()["others"], 1);
  ASSERT_EQ(run_once({"topic", "delete", to_}).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "create", to_}).exit_code, 0);
  const Answer missing = bridge();
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.json()["missing"], 10);
}

TEST_F(Bridge, a_destination_that_was_made_anew_is_told_with_the_way_out) {
  send(from_, 0, 5);
  ASSERT_EQ(bridge().exit_code, 0);
  ASSERT_EQ(run_once({"topic", "delete", to_}).exit_code, 0);
  ASSERT_EQ(run_once({"topic", "create", to_}).exit_code, 0);
  const std::string state = "sqlite:" + scratch_.path("state.db");
  const Answer nothing_new = run_once({"bridge", from_, to_, "--state", state});
  EXPECT_EQ(nothing_new.exit_code, 1);
  EXPECT_NE(nothing_new.err.find("created again"), std::string::npos) << nothing_new.err;
  EXPECT_NE(nothing_new.err.find("use another --state"), std::string::npos) << nothing_new.err;
  send(from_, 5, 3);
  const Answer refused = run_once({"bridge", from_, to_, "--state", state});
  EXPECT_EQ(refused.exit_code, 3);
  for (const std::string part : {"error[diverged]", "created again", "use another --state",
                                 "once outbox restart", state.c_str()})
    EXPECT_NE(refused.err.find(part), std::string::npos) << part << "\n" << refused.err;
  const Answer again = run_once({"bridge", from_, to_, "--state", state + "2", "-o", "json"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.json()["copied"], 8);
  EXPECT_EQ(content(from_), content(to_));
}

TEST_F(Bridge, a_rate_is_kept) {
  send(from_, 0, 100);
  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(bridge({"--rate", "100"}).exit_code, 0);
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(800));
  EXPECT_EQ(content(to_), content(from_));
}

TEST_F(Bridge, an_audit_tells_duplicates_with_their_places_and_needs_an_id) {
  send(from_, 0, 10);
  EXPECT_EQ(run_once({"audit", from_}).exit_code, 0);
  send(from_, 4, 1);
  const Answer answer = run_once({"audit", from_, "--id", "json:/order", "-o", "json"});
  EXPECT_EQ(answer.exit_code, 1) << answer.err;
  const Json report = answer.json();
  EXPECT_EQ(report["messages"], 11);
  EXPECT_EQ(report["duplicated_ids"], 1);
  EXPECT_EQ(report["surplus"], 1);
  ASSERT_EQ(report["doubled"].size(), 1u);
  EXPECT_EQ(report["doubled"][0]["first"]["partition"],
            report["doubled"][0]["second"]["partition"]);
  EXPECT_LT(report["doubled"][0]["first"]["offset"], report["doubled"][0]["second"]["offset"]);
  const Answer none = run_once({"audit", from_, "--id", "json:/none", "-o", "json"});
  EXPECT_EQ(none.json()["without_id"], 11);
  EXPECT_EQ(none.json()["ok"], false) << "nothing was compared";
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(run_once({"audit", from_, "--id", "jason:/none"}).exit_code, 2);
}

TEST_F(Bridge, a_topic_is_not_copied_onto_itself_however_it_is_written) {
  send(from_, 0, 3);
  const std::string state = "sqlite:" + scratch_.path("state.db");
  std::filesystem::create_directory_symlink(scratch_.directory(), scratch_.path("link"));
  const std::string path = from_.substr(5);
  for (const std::string& to : {from_, "file://" + path, "file:" + scratch_.path("./from"),
                                "file:" + scratch_.path("link/from")}) {
    const Answer answer = run_once({"bridge", from_, to, "--state", state});
    EXPECT_EQ(answer.exit_code, 2) << to << answer.err;
    EXPECT_NE(answer.err.find("the same topic"), std::string::npos) << answer.err;
  }
  const Answer listed = run_once({"bridge", to_ + ",from", from_, "--state", state, "--follow"});
  EXPECT_EQ(listed.exit_code, 2) << listed.err;
  EXPECT_NE(listed.err.find("a copy would never end"), std::string::npos) << listed.err;
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("state.db")));
}

TEST_F(Bridge, the_report_tells_duplicates_and_what_is_parked) {
  send(from_, 0, 5);
  send(from_, 2, 2);
  ASSERT_EQ(run_once({"produce", from_}, "no id\n").exit_code, 0);
  const Answer answer = bridge({"--id", "json:/order"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["copied"], 5);
  EXPECT_EQ(answer.json()["duplicates"], 2);
  EXPECT_EQ(answer.json()["parked"], 1);
  EXPECT_EQ(answer.json()["without_id"], 1);
  EXPECT_NE(answer.err.find("once park ls"), std::string::npos) << answer.err;
}

TEST_F(Bridge, an_audit_tells_gaps_in_the_sequences_of_producers) {
  const std::string url = "file:" + scratch_.path("gaps");
  ASSERT_EQ(run_once({"topic", "create", url, "--gaps", "accept"}).exit_code, 0);
  {
    auto sink = open_sink(url).value();
    Stamp stamp = sink->producers()->enter(0, "somebody").value();
    for (const std::uint64_t sequence : {0u, 1u, 5u, 4u, 9u}) {
      stamp.sequence = sequence;
      const Message message{.id = "m" + std::to_string(sequence)};
      ASSERT_TRUE(sink->append(0, stamp, std::span(&message, 1)));
    }
  }
  const Answer answer = run_once({"audit", url, "-o", "json"});
  EXPECT_EQ(answer.exit_code, 1) << answer.err;
  EXPECT_EQ(answer.json()["gaps"], 2);
  EXPECT_EQ(answer.json()["missing_sequences"], 5);
  EXPECT_EQ(answer.json()["gap_list"][0]["from"], 2);
  EXPECT_EQ(answer.json()["gap_list"][0]["to"], 3);
  EXPECT_EQ(answer.json()["surplus"], 0);
}

}  // namespace
}  // namespace once
