// SPDX-License-Identifier: Apache-2.0
// The functions that run for every message, alone and in memory.
#include <benchmark/benchmark.h>
#include <once/handler.h>
#include <once/identity.h>
#include <once/open.h>

#include "base/crc32c.h"
#include "load.h"
#include "log/producer_table.h"
#include "log/record_batch.h"
#include "model/ledger.h"

namespace once::bench {
namespace {

constexpr std::size_t batch_count = 1000;

Delivery delivery_of(const Message& message) {
  Delivery delivery;
  delivery.partition = "load/0";
  delivery.id = message.id;
  delivery.key = *message.key;
  delivery.body = *message.body;
  delivery.timestamp_ms = message.timestamp_ms;
  return delivery;
}

void per_message(benchmark::State& state, std::size_t count) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

void crc32c_of_bytes(benchmark::State& state) {
  const std::string bytes(static_cast<std::size_t>(state.range(0)), 'x');
  for (auto _ : state) benchmark::DoNotOptimize(crc32c(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(crc32c_of_bytes)->Arg(100)->Arg(4096)->Arg(1 << 20);

void crc32c_portable_of_bytes(benchmark::State& state) {
  const std::string bytes(static_cast<std::size_t>(state.range(0)), 'x');
  for (auto _ : state) benchmark::DoNotOptimize(crc32c_portable(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(crc32c_portable_of_bytes)->Arg(4096);

void encode_record_batch(benchmark::State& state) {
  const auto messages = make_messages(IdKind::uuid7, 0, batch_count);
  log::Buffer buffer;
  for (auto _ : state) {
    buffer.clear();
    log::encode_batch(buffer, 0, {.producer = 1, .epoch = 0, .sequence = 0}, 0, messages);
    benchmark::DoNotOptimize(buffer.view().data());
  }
  per_message(state, batch_count);
}
BENCHMARK(encode_record_batch);

void decode_record_batch(benchmark::State& state) {
  const Stamp stamp{.producer = 1, .epoch = 0, .sequence = 0};
  log::Buffer buffer;
  log::encode_batch(buffer, 0, stamp, 0, make_messages(IdKind::uuid7, 0, batch_count));
  for (auto _ : state) {
    log::Deliveries deliveries;
    if (!log::decode_batch(buffer.view(), stamp, true, deliveries))
      state.SkipWithError("cannot decode");
    deliveries.finish();
    benchmark::DoNotOptimize(deliveries.deliveries.data());
  }
  per_message(state, batch_count);
}
BENCHMARK(decode_record_batch);

void id_by_rule(benchmark::State& state, const char* text) {
  const Message message = make_message(IdKind::uuid7, 1);
  const Delivery delivery = delivery_of(message);
  const auto rule = IdRule::parse(text);
  if (!rule) return state.SkipWithError("no such rule");
  for (auto _ : state) benchmark::DoNotOptimize(rule->id_of(delivery));
  per_message(state, 1);
}
BENCHMARK_CAPTURE(id_by_rule, carried, "carried");
BENCHMARK_CAPTURE(id_by_rule, key, "key");
BENCHMARK_CAPTURE(id_by_rule, json_pointer, "json:/order");
BENCHMARK_CAPTURE(id_by_rule, two_json_pointers, "json:/order,/account");
BENCHMARK_CAPTURE(id_by_rule, digest_of_body, "digest:");

void born_of_uuid7(benchmark::State& state) {
  const Message message = make_message(IdKind::uuid7, 1);
  const Delivery delivery = delivery_of(message);
  for (auto _ : state) benchmark::DoNotOptimize(born_ms_of(BornRule::uuid7, delivery, message.id));
  per_message(state, 1);
}
BENCHMARK(born_of_uuid7);

void fingerprint_of_message(benchmark::State& state) {
  Message message = make_message(IdKind::uuid7, 1);
  message.body->resize(static_cast<std::size_t>(state.range(0)), 'x');
  const Delivery delivery = delivery_of(message);
  for (auto _ : state) benchmark::DoNotOptimize(fingerprint_of(delivery));
  per_message(state, 1);
}
BENCHMARK(fingerprint_of_message)->Arg(100)->Arg(1000);

// One batch after another from one of several producers, as the log does for each append.
void producer_table_check_and_apply(benchmark::State& state) {
  const auto producers = static_cast<std::uint64_t>(state.range(0));
  log::ProducerTable table;
  for (std::uint64_t i = 1; i <= producers; ++i)
    if (!table.apply_entry("producer " + std::to_string(i), i, 1, 0))
      return state.SkipWithError("cannot enter");
  std::vector<std::uint64_t> sequences(producers, 0);
  std::int64_t offset = 0;
  std::uint64_t turn = 0;
  for (auto _ : state) {
    const std::uint64_t which = turn++ % producers;
    const Stamp stamp{.producer = which + 1, .epoch = 1, .sequence = sequences[which]};
    const log::Check check = table.check(stamp, batch_count, GapPolicy::refuse);
    if (check.kind != log::Check::Kind::fresh || !table.apply(stamp, batch_count, offset))
      return state.SkipWithError("the table refused a new batch");
    sequences[which] += batch_count;
    offset += batch_count;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(producer_table_check_and_apply)->Arg(1)->Arg(10'000);

void admit_in_memory(benchmark::State& state) {
  const auto store = open_memory_store();
  if (!store) return state.SkipWithError("no store");
  std::uint64_t number = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const auto messages = make_messages(IdKind::uuid7, number, batch_count);
    number += batch_count;
    std::vector<Entry> entries;
    for (const Message& message : messages)
      entries.push_back({.id = message.id,
                         .fingerprint = {},
                         .born_ms = message.timestamp_ms,
                         .partition = "load/0",
                         .offset = 0});
    state.ResumeTiming();
    const auto transaction = (*store)->begin("bench");
    if (!transaction || !(*transaction)->admit(entries) || !(*transaction)->commit())
      return state.SkipWithError("cannot admit");
  }
  per_message(state, batch_count);
}
BENCHMARK(admit_in_memory)->Iterations(200);

}  // namespace
}  // namespace once::bench

BENCHMARK_MAIN();
