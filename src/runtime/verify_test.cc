// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <once/pipeline.h>

#include <string>
#include <vector>

namespace once {
namespace {

const SourceTraits log_source{
    .name = "file:orders", .ordered = true, .replayable = true, .redelivery_ms_max = 0};
const SourceTraits queue{
    .name = "amqp:orders", .ordered = false, .replayable = false, .redelivery_ms_max = 3'600'000};
const StoreTraits database{.name = "sqlite:shop.db",
                           .durability = StoreTraits::Durability::power,
                           .sql = true,
                           .key_value = false};

Handler sql_handler() {
  return each([](const Delivery&, SqlTransaction&) -> Result<Outcome> { return applied(); });
}
Handler key_value_handler() {
  return each([](const Delivery&, KeyValueTransaction&) -> Result<Outcome> { return applied(); });
}
PipelineOptions options() {
  PipelineOptions result;
  result.scope = "shop";
  result.id = IdRule{};
  return result;
}

// The refusal, or nothing when it would start.
std::string refusal(const SourceTraits& source, const PipelineOptions& asked,
                    const Handler& handler = sql_handler()) {
  const auto answer = verify(source, database, handler, asked);
  if (answer) return "";
  EXPECT_EQ(answer.error().tag, "config");
  EXPECT_EQ(answer.error().remedy, Remedy::stop);
  return answer.error().text;
}

TEST(Verify, tells_the_promise) {
  EXPECT_EQ(verify(log_source, database, sql_handler(), options()).value(),
            "effectively once per id (carried), also if processes die or the power fails");
  PipelineOptions positions = options();
  positions.id.reset();
  EXPECT_NE(verify(log_source, database, sql_handler(), positions)->find("sent twice counts twice"),
            std::string::npos);
  positions.semantics = Semantics::at_most_once;
  EXPECT_NE(verify(queue, database, sql_handler(), positions)->find("is lost"), std::string::npos);
}

TEST(Verify, the_weakest_destination_is_named) {
  const SinkTraits log{.name = "file:paid", .recognises = Recognises::by_stamp};
  const SinkTraits kafka{.name = "kafka://a/paid",
                         .recognises = Recognises::by_stamp,
                         .recognises_ms = 7 * 86'400'000LL};
  const SinkTraits http{
      .name = "https://a/paid", .recognises = Recognises::by_id, .recognises_ms = 86'400'000};
  const SinkTraits amqp{.name = "amqp://a/paid", .recognises = Recognises::none};
  const auto promise = [](const std::vector<SinkTraits>& sinks) {
    return verify(log_source, database, sql_handler(), options(), sinks).value();
  };
  const std::string whole = promise({});
  EXPECT_EQ(promise({log}), whole) << "it recognises them for as long as they are there";
  EXPECT_EQ(promise({log, kafka}), whole + "; kafka://a/paid recognises resends for 7 days");
  EXPECT_EQ(promise({kafka, http}),
            whole + "; https://a/paid recognises resends by their ids for 1 day");
  EXPECT_EQ(promise({amqp, kafka, http}),
            whole +
                "; amqp://a/paid does not recognise resends: a crash can leave a copy there, which "
                "has the same id, so its consumers need a ledger");
}

TEST(Verify, an_unordered_source_without_ids_does_not_start_and_prints_the_schedule) {
  PipelineOptions asked = options();
  asked.id.reset();
  EXPECT_NE(refusal(queue, asked).find("the ack is lost; M is delivered again"), std::string::npos);
  asked.id = IdRule{.kind = IdRule::Kind::coordinates, .fields = {}};
  EXPECT_NE(refusal(queue, asked).find("tag 12"), std::string::npos);
  EXPECT_EQ(refusal(log_source, asked), "");
}

// H8: a window shorter than the redelivery path is refused, on both sides of the limit.
TEST(Verify, H08_a_retention_shorter_than_the_redelivery_path_does_not_start) {
  PipelineOptions asked = options();
  asked.retention_ms = 3'599'999;
  EXPECT_NE(refusal(queue, asked).find("3600000 ms later"), std::string::npos);
  asked.retention_ms = 3'600'000;
  EXPECT_EQ(refusal(queue, asked), "");
  SourceTraits endless = queue;
  endless.redelivery_ms_max = -1;
  EXPECT_NE(refusal(endless, asked).find("at any time"), std::string::npos);
  asked.retention_ms = -1;
  EXPECT_EQ(refusal(endless, asked), "");
}

TEST(Verify, order_by_key_needs_ids) {
  PipelineOptions asked = options();
  asked.order = Order::key;
  EXPECT_EQ(refusal(log_source, asked), "");
  asked.id.reset();
  EXPECT_NE(refusal(log_source, asked).find("6 takes effect twice"), std::string::npos);
}

// H19: an effect that is not in the store of the ledger is not accepted as if it were.
TEST(Verify, H19_a_handler_for_another_kind_of_store_does_not_start) {
  EXPECT_NE(refusal(log_source, options(), key_value_handler()).find("sqlite:shop.db"),
            std::string::npos);
}

// H22: what a commit survives is part of the promise, and the promise says so.
TEST(Verify, H22_the_promise_names_what_the_store_survives) {
  StoreTraits store = database;
  store.durability = StoreTraits::Durability::process;
  EXPECT_EQ(verify(log_source, store, sql_handler(), options()).value(),
            "effectively once per id (carried), also if processes die");
  store.durability = StoreTraits::Durability::none;
  EXPECT_EQ(verify(log_source, store, sql_handler(), options()).value(),
            "effectively once per id (carried), until this process ends");
}

TEST(Verify, limits_are_checked) {
  PipelineOptions asked = options();
  asked.scope = "";
  EXPECT_NE(refusal(log_source, asked).find("scope"), std::string::npos);
  for (const char* unwritable : {"a\nb", "a\tb", "\x1b[31m", "a\x7f", "\xc2\x85", "\xff"}) {
    asked.scope = unwritable;
    EXPECT_NE(refusal(log_source, asked).find("no command could name it"), std::string::npos);
  }
  for (const char* reserved : {"once.outbox", "once.relay", "once."}) {
    asked.scope = reserved;
    EXPECT_NE(refusal(log_source, asked).find("reserved"), std::string::npos) << reserved;
  }
  asked = options();
  asked.lanes = 0;
  EXPECT_NE(refusal(log_source, asked).find("lanes"), std::string::npos);
  asked = options();
  asked.batch_count_min = 2000;
  EXPECT_NE(refusal(log_source, asked).find("batch_count_min"), std::string::npos);
  asked = options();
  asked.retry.attempts_max = 0;
  EXPECT_NE(refusal(log_source, asked).find("attempts_max"), std::string::npos);
  asked = options();
  asked.retry.backoff_ms_max = 1;
  EXPECT_NE(refusal(log_source, asked).find("backoff"), std::string::npos);
  asked = options();
  asked.queue_batches_max = 0;
  EXPECT_NE(refusal(log_source, asked).find("queue_batches_max"), std::string::npos);
}

}  // namespace
}  // namespace once
