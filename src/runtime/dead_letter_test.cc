// SPDX-License-Identifier: Apache-2.0
#include "runtime/dead_letter.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/lane.h"
#include "testing/effects.h"
#include "testing/script_source.h"
#include "testing/sim_clock.h"

namespace once {
namespace {

using testing::effects_of;
using testing::ScriptSource;
using testing::SimClock;
using testing::write_effect;
using CommitFault = MemoryStore::CommitFault;

constexpr std::int64_t now_ms = 1'700'000'000'000;

std::map<std::string, std::string> parked_headers(const Message& message) {
  std::map<std::string, std::string> found;
  for (const Header& header : message.headers)
    if (header.name.starts_with(parked_header_prefix))
      found[header.name.substr(parked_header_prefix.size())] = header.value.value_or("(absent)");
  return found;
}

// A lane whose parked messages go to the destination "dead" as well. The handler parks what says
// "park", fails with what says "fail", and applies the rest.
class DeadLetterTest : public ::testing::Test {
 protected:
  DeadLetterTest() {
    options_.scope = "shop";
    options_.id = IdRule{};
    options_.park_to = "dead";
    options_.retry = {.attempts_max = 3, .backoff_ms_min = 1, .backoff_ms_max = 1};
    store_clock_.measured(now_ms);
  }

  static Result<Outcome> handle(const Delivery& delivery, KeyValueTransaction& transaction) {
    ONCE_TRY(write_effect(delivery, transaction));
    if (delivery.body == "park") return parked("asked for it");
    if (delivery.body == "fail") return retry("not now");
    return applied();
  }

  void say(const std::string& id, const std::string& body, std::int64_t born_ms = now_ms) {
    source_.add("p0", {.id = id, .key = "k", .body = body, .headers = {}, .timestamp_ms = born_ms});
  }
  Lane make() {
    return Lane({.store = store_,
                 .clock = clock_,
                 .handler = handler_,
                 .options = options_,
                 .counters = counters_,
                 .store_clock = &store_clock_,
                 .source = "script:"});
  }
  // Handles everything that was said, from where the position is.
  void run() {
    Lane lane = make();
    lane.own("p0", store_.take("shop", "p0").value());
    lane.push(source_.batch("p0"));
    for (int steps = 0; !lane.idle() && steps < 1000; ++steps) {
      const auto step = lane.step();
      ASSERT_TRUE(step) << step.error().text;
      if (step->wait_ms > 0) clock_.step(step->wait_ms);
    }
    ASSERT_TRUE(lane.idle());
  }
  std::vector<Message> dead() {
    std::vector<Message> messages;
    const auto rows = store_.outbox()->pending("dead", 1000).value();
    for (const OutboxRow& row : rows) messages.push_back(row.message);
    return messages;
  }
  std::vector<ParkedRecord> parked_records() {
    return store_.records()->parked("shop", 0, 1000).value();
  }

  SimClock clock_{now_ms};
  MemoryStore store_{clock_};
  StoreClock store_clock_{clock_};
  ScriptSource source_;
  PipelineOptions options_;
  Counters counters_;
  Handler handler_ = each(handle);
};

TEST_F(DeadLetterTest, every_kind_of_reason_gets_there_once_and_stays_in_the_store) {
  ASSERT_TRUE(store_.forget("shop", 1000, 1));
  say("good", "apply");
  say("poison", "park");
  say("weak", "fail");
  say("good", "other content");
  say("old", "apply", 999);
  say("early", "apply", now_ms + options_.ahead_ms_max + 1);
  say("", "apply");
  run();
  const auto parked = parked_records();
  const auto copies = dead();
  ASSERT_EQ(parked.size(), 6u);
  ASSERT_EQ(copies.size(), 6u);
  const std::vector<std::string> tags{"handler", "attempts", "mismatch",
                                      "too_old", "ahead",    "no_id"};
  for (std::size_t i = 0; i < copies.size(); ++i) {
    auto headers = parked_headers(copies[i]);
    EXPECT_EQ(headers["tag"], tags[i]);
    EXPECT_EQ(headers["reason"], parked[i].reason);
    EXPECT_EQ(headers["scope"], "shop");
    EXPECT_EQ(headers["source"], "script:");
    EXPECT_EQ(headers["partition"], "p0");
    EXPECT_EQ(headers["offset"], std::to_string(parked[i].offset));
    EXPECT_EQ(headers["attempts"], std::to_string(parked[i].attempts));
    EXPECT_EQ(copies[i].body, parked[i].message.body);
    EXPECT_EQ(copies[i].timestamp_ms, parked[i].message.timestamp_ms);
  }
  EXPECT_EQ(copies[0].id, "poison");
  EXPECT_EQ(parked_headers(copies[1])["attempts"], "3");
  EXPECT_EQ(copies[5].id, "script:/p0/6");  // a message without an id has its coordinates
}

TEST_F(DeadLetterTest, a_copy_keeps_what_is_absent_and_the_headers_of_the_message) {
  Message message{.id = "m", .key = std::nullopt, .body = std::nullopt};
  message.headers = {{"kind", std::nullopt}, {"once-parked-reason", "of an earlier time"}};
  source_.add("p0", message);
  handler_ = each([](const Delivery&, KeyValueTransaction&) -> Result<Outcome> {
    return parked("asked for it");
  });
  run();
  const auto copies = dead();
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].key, std::nullopt);
  EXPECT_EQ(copies[0].body, std::nullopt);
  EXPECT_EQ(copies[0].headers[0], (Header{"kind", std::nullopt}));
  EXPECT_EQ(copies[0].headers.size(), 8u);
  EXPECT_EQ(parked_headers(copies[0])["reason"], "asked for it");
}

TEST_F(DeadLetterTest, what_the_store_refuses_is_parked_with_the_tag_of_the_refusal) {
  int commits = 0;
  store_.set_commit_fault(
      [&] { return ++commits == 1 ? CommitFault::constraint : CommitFault::none; });
  say("m0", "apply");
  run();
  ASSERT_EQ(dead().size(), 1u);
  EXPECT_EQ(parked_headers(dead()[0])["tag"], "constraint");
  EXPECT_TRUE(effects_of(store_, "p0").empty());
}

TEST_F(DeadLetterTest, a_commit_that_fails_or_is_lost_leaves_one_copy) {
  for (const CommitFault fault :
       {CommitFault::refused, CommitFault::lost_before, CommitFault::lost_after}) {
    const std::size_t before = dead().size();
    say("m" + std::to_string(static_cast<int>(fault)), "park");
    bool done = false;
    store_.set_commit_fault([&] { return std::exchange(done, true) ? CommitFault::none : fault; });
    run();
    store_.set_commit_fault({});
    EXPECT_EQ(dead().size(), before + 1);
    EXPECT_EQ(parked_records().size(), before + 1);
  }
}

TEST_F(DeadLetterTest, a_pipeline_does_not_park_to_the_topic_it_reads) {
  options_.park_to = "script:";
  const auto refused = verify(source_.traits(), store_.traits(), handler_, options_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("without end"), std::string::npos);
}

// Each session of a queue counts from one: two messages may not become one for a reader.
TEST(DeadLetter, without_an_id_of_a_session_never_shares_its_id) {
  const ParkedFacts facts{.reason = "no id", .tag = "no_id", .scope = "shop", .source = "queue"};
  Delivery delivery;
  delivery.partition = "orders";
  delivery.offset = 1;
  EXPECT_EQ(dead_letter_of(delivery, facts).id, "queue/orders/1");
  delivery.session = 1;
  const std::string first = dead_letter_of(delivery, facts).id;
  const std::string second = dead_letter_of(delivery, facts).id;
  EXPECT_TRUE(first.starts_with("queue/orders/")) << first;
  EXPECT_NE(first, second);
  delivery.id = "order-1";
  EXPECT_EQ(dead_letter_of(delivery, facts).id, "order-1");
}

}  // namespace
}  // namespace once
