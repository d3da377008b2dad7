// SPDX-License-Identifier: Apache-2.0
// Bugs that others shipped, planted in our own sources: a test suite that does not find them is
// worth nothing. Only this program contains them (ONCE_MUTANTS).
#include "base/mutant.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "log/partition.h"
#include "runtime/lane_thread.h"
#include "simulation/claims_world.h"
#include "simulation/doors_world.h"
#include "simulation/horizon_world.h"
#include "simulation/later_world.h"
#include "simulation/queue_world.h"
#include "simulation/relay_world.h"
#include "simulation/topic_world.h"
#include "simulation/world.h"
#include "store/memory/memory.h"
#include "store/sqlite/connection.h"
#include "testing/scratch.h"
#include "testing/script_source.h"
#include "testing/sim_clock.h"
#include "testing/sim_disk.h"

namespace once {
namespace {

using Problems = std::vector<std::string>;

// The simulator, until it finds something.
Problems simulate(std::uint64_t seeds) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto report = simulation::run_world({.seed = seed});
    if (report.violations.empty()) continue;
    Problems problems = report.violations;
    problems.insert(problems.begin(), fmt::format("seed {}", seed));
    return problems;
  }
  return {};
}

// A partition with some segments of acknowledged messages.
class SmallLog {
 public:
  static constexpr std::int64_t message_count = 40;

  SmallLog() : disk_(1) {
    auto partition = open().value();
    Stamp stamp = partition->enter("sender").value();
    for (std::int64_t i = 0; i < message_count; ++i) {
      Message message;
      message.id = fmt::format("m{}", i);
      message.body = std::string(200, static_cast<char>('a' + i % 26));
      const auto ticket = partition->stage(stamp, std::span(&message, 1)).value();
      EXPECT_TRUE(partition->sync());
      EXPECT_TRUE(partition->outcome(ticket));
      ++stamp.sequence;
    }
  }

  Result<std::unique_ptr<log::Partition>> open() {
    files_ = std::make_unique<testing::SimFiles>(disk_);
    log::PartitionOptions options;
    options.segment_bytes_max = 4096;
    options.random = [] { return std::uint64_t{7}; };
    return log::Partition::open(*files_, clock_, "log/0", options);
  }

  // Opens it and reads it: it has all its messages, or it says that it is damaged.
  Problems problems() {
    auto partition = open();
    if (!partition) return {};
    std::int64_t offset = 0;
    while (offset < (*partition)->end_offset()) {
      const auto read = (*partition)->read(offset, 1 << 20);
      if (!read) return {};
      if (read->end_offset <= offset) break;
      offset = read->end_offset;
    }
    if (offset == message_count) return {};
    return {fmt::format("{} of {} acknowledged messages are left, and nobody was told", offset,
                        message_count)};
  }

  testing::SimDisk& disk() { return disk_; }

 private:
  testing::SimDisk disk_;
  testing::SimClock clock_;
  std::unique_ptr<testing::SimFiles> files_;
};

// One bit of every few bytes of every file, each time in a new log.
Problems flip_bits() {
  for (const std::string& path : SmallLog().disk().paths()) {
    for (std::int64_t bit = 3;; bit += 8 * 37 + 1) {
      SmallLog log;
      if (!log.disk().flip_bit(path, bit)) break;
      Problems problems = log.problems();
      if (problems.empty()) continue;
      problems.push_back(fmt::format("after bit {} of {} was flipped", bit, path));
      return problems;
    }
  }
  return {};
}

// Files that are only caches are lost or damaged; the messages must not suffer.
Problems lose_indexes() {
  SmallLog log;
  int damaged = 0;
  for (const std::string& path : log.disk().paths())
    if (path.ends_with(".index")) damaged += log.disk().flip_bit(path, 100) ? 1 : 0;
  EXPECT_GT(damaged, 0);
  for (int i = 0; i < 2; ++i)
    if (const auto opened = log.open(); !opened)
      return {"a damaged cache harms the log: " + opened.error().text};
  return log.problems();
}

Problems open_unsafe_database() {
  const testing::Scratch scratch;
  ConnectionOptions options;
  options.synchronous = "NORMAL";
  if (Connection::open(scratch.path("unsafe.db"), options))
    return {"a database that loses commits in a power cut was accepted"};
  return {};
}

// Effects outside the store, on every kind of other side.
Problems simulate_claims() {
  using simulation::Side;
  for (std::uint64_t seed = 0; seed < 500; ++seed)
    for (const Side side :
         {Side::tells_duplicates, Side::can_be_asked, Side::at_least_once, Side::at_most_once}) {
      const auto report = simulation::run_claims_world({.seed = seed, .side = side});
      if (!report.violations.empty()) return report.violations;
    }
  return {};
}

// Relays of several processes and stores.
Problems simulate_relays() {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const auto report = simulation::run_relay_world({.seed = seed});
    if (!report.violations.empty()) return report.violations;
  }
  return {};
}

// A partition as a server uses it.
Problems simulate_doors(std::uint64_t seeds) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto report = simulation::run_doors_world({.seed = seed});
    if (!report.violations.empty()) return report.violations;
  }
  return {};
}

// A producer with a name in several partitions.
Problems simulate_topic() {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Problems problems = simulation::run_topic_world(seed);
    if (!problems.empty()) return problems;
  }
  return {};
}

// What was forgotten comes again.
Problems claim_forgotten() {
  testing::SimClock clock;
  MemoryStore memory(clock);
  Store& store = memory;
  const ClaimRequest request{.id = "a", .born_ms = 1000};
  const auto claim = [&] {
    return store.claims()->claim("bank", {"owner", 1000, {}}, std::span(&request, 1)).value()[0];
  };
  const ClaimAnswer first = claim();
  const ClaimChange done{.id = "a", .fence = first.record.fence};
  EXPECT_TRUE(store.claims()->change("bank", std::span(&done, 1)).value()[0]);
  EXPECT_EQ(store.forget("bank", 2000, 10).value().rows, 1u);
  if (claim().kind == ClaimAnswer::Kind::too_old) return {};
  return {"an effect that was forgotten counts as new"};
}

// Several processes that forget together, until something is found.
Problems simulate_horizon(std::uint64_t seeds) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto report = simulation::run_horizon_world({.seed = seed});
    if (!report.violations.empty()) return report.violations;
  }
  return {};
}

// Messages that wait in the store, and several processes that handle them.
Problems simulate_later() {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto report = simulation::run_later_world({.seed = seed});
    if (!report.violations.empty()) return report.violations;
  }
  return {};
}

// Consumers of a queue.
Problems simulate_queues() {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto report = simulation::run_queue_world({.seed = seed});
    if (!report.violations.empty()) return report.violations;
  }
  return {};
}

// A partition is taken away while nobody knows whether its commit has happened.
Problems revoke_in_doubt() {
  testing::SimClock clock;
  MemoryStore store(clock);
  testing::ScriptSource source;
  source.add("p0", {.id = "m0"});
  PipelineOptions options;
  options.scope = "shop";
  options.id = IdRule{};
  Counters counters;
  const Handler handler =
      each([](const Delivery&, Transaction&) -> Result<Outcome> { return applied(); });
  std::atomic<LaneThread*> lane = nullptr;
  std::atomic<int> commits = 0;
  store.set_commit_fault([&] {
    if (commits++ > 0) return MemoryStore::CommitFault::none;
    while (lane == nullptr) std::this_thread::yield();
    (*lane).disown("p0");
    return MemoryStore::CommitFault::lost_before;
  });
  LaneThread thread({.store = store,
                     .clock = clock,
                     .handler = handler,
                     .options = options,
                     .counters = counters},
                    LaneThread::Identify::by_poller, [] {});
  thread.own("p0", store.take("shop", "p0").value());
  thread.push(source.batch("p0"));
  lane = &thread;
  for (int i = 0; i < 1000 && thread.queued() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (thread.queued() == 0) return {};
  return {"a lane has no room although it has nothing to do"};
}

// A table that is missing: no message is to blame.
Problems refuse_every_statement() {
  testing::SimClock clock;
  MemoryStore store(clock);
  testing::ScriptSource source;
  for (int i = 0; i < 30; ++i) source.add("p0", {.id = fmt::format("m{}", i)});
  PipelineOptions options;
  options.scope = "shop";
  options.id = IdRule{};
  Counters counters;
  const Handler handler = each([](const Delivery&, Transaction&) -> Result<Outcome> {
    return fail(Error{Remedy::stop, "sql", "there is no such table", std::nullopt, std::nullopt,
                      Cause::handler});
  });
  Lane lane({.store = store,
             .clock = clock,
             .handler = handler,
             .options = options,
             .counters = counters});
  lane.own("p0", store.take("shop", "p0").value());
  lane.push(source.batch("p0"));
  for (int i = 0; i < 1000 && !lane.idle(); ++i) {
    const auto step = lane.step();
    if (!step) break;
    clock.step(step->wait_ms);
  }
  if (counters.parked == 0) return {};
  return {fmt::format("{} messages were parked for a missing table", counters.parked.load())};
}

struct Planted {
  Mutant mutant;
  const char* name;
  std::function<Problems()> find;
};

Problems find_by_simulation() { return simulate(3000); }
Problems find_by_doors() { return simulate_doors(1000); }
Problems find_by_horizon() { return simulate_horizon(1000); }

const std::vector<Planted>& all_planted() {
  static const std::vector<Planted> all{
      {Mutant::ack_before_sync, "ack_before_sync", find_by_simulation},
      {Mutant::table_before_durable, "table_before_durable", find_by_simulation},
      {Mutant::drop_batch_for_one_duplicate, "drop_batch_for_one_duplicate", find_by_simulation},
      {Mutant::gap_resets_sequence, "gap_resets_sequence", find_by_simulation},
      {Mutant::unknown_taken_for_failed, "unknown_taken_for_failed", find_by_simulation},
      {Mutant::unknown_producer_accepted, "unknown_producer_accepted", find_by_simulation},
      {Mutant::snapshot_without_intervals, "snapshot_without_intervals", find_by_simulation},
      {Mutant::horizon_by_wall_clock, "horizon_by_wall_clock", find_by_simulation},
      {Mutant::reordered_taken_for_duplicate, "reordered_taken_for_duplicate", find_by_simulation},
      {Mutant::fsync_retried, "fsync_retried", find_by_simulation},
      {Mutant::sync_failure_acknowledged, "sync_failure_acknowledged", find_by_simulation},
      {Mutant::corruption_cut_as_torn_tail, "corruption_cut_as_torn_tail", flip_bits},
      {Mutant::bad_snapshot_deletes_data, "bad_snapshot_deletes_data", lose_indexes},
      {Mutant::roll_replaces_live_segment, "roll_replaces_live_segment", find_by_simulation},
      {Mutant::no_directory_sync, "no_directory_sync", find_by_simulation},
      {Mutant::rename_before_sync, "rename_before_sync", find_by_simulation},
      {Mutant::position_before_effect, "position_before_effect", find_by_simulation},
      {Mutant::ledger_outside_transaction, "ledger_outside_transaction", find_by_simulation},
      {Mutant::zombie_not_fenced, "zombie_not_fenced", find_by_simulation},
      {Mutant::unsafe_sync_mode_accepted, "unsafe_sync_mode_accepted", open_unsafe_database},
      {Mutant::ack_what_was_polled, "ack_what_was_polled", find_by_simulation},
      {Mutant::claim_without_lease, "claim_without_lease", simulate_claims},
      {Mutant::stale_owner_settles, "stale_owner_settles", simulate_claims},
      {Mutant::forgotten_claim_is_new, "forgotten_claim_is_new", claim_forgotten},
      {Mutant::failed_claim_is_settled, "failed_claim_is_settled", simulate_claims},
      {Mutant::lost_owner_counts_as_done, "lost_owner_counts_as_done", simulate_claims},
      {Mutant::waiting_does_not_count, "waiting_does_not_count", find_by_horizon},
      {Mutant::horizon_of_own_partitions, "horizon_of_own_partitions", find_by_horizon},
      {Mutant::older_store_accepted, "older_store_accepted", find_by_horizon},
      {Mutant::added_partition_ignored, "added_partition_ignored", find_by_horizon},
      {Mutant::births_ahead_believed, "births_ahead_believed", find_by_horizon},
      {Mutant::position_of_any_topic, "position_of_any_topic", find_by_horizon},
      {Mutant::missing_witness_accepted, "missing_witness_accepted", find_by_horizon},
      {Mutant::end_without_witness_accepted, "end_without_witness_accepted", find_by_horizon},
      {Mutant::copy_of_freed_id_is_duplicate, "copy_of_freed_id_is_duplicate", find_by_horizon},
      {Mutant::revoked_in_doubt_leaks, "revoked_in_doubt_leaks", revoke_in_doubt},
      {Mutant::relay_ignores_enter, "relay_ignores_enter", simulate_relays},
      {Mutant::relay_ignores_content, "relay_ignores_content", simulate_relays},
      {Mutant::relay_sends_by_number, "relay_sends_by_number", simulate_relays},
      {Mutant::later_overtaken, "later_overtaken", simulate_later},
      {Mutant::later_handled_twice, "later_handled_twice", simulate_later},
      {Mutant::unsynced_batches_handed_out, "unsynced_batches_handed_out", find_by_doors},
      {Mutant::raw_batch_offset_not_set, "raw_batch_offset_not_set", find_by_doors},
      {Mutant::raw_batch_unchecked, "raw_batch_unchecked", find_by_doors},
      {Mutant::raw_sequence_not_widened, "raw_sequence_not_widened", find_by_doors},
      {Mutant::completion_before_durability, "completion_before_durability", find_by_doors},
      {Mutant::wakeup_lost, "wakeup_lost", find_by_doors},
      {Mutant::waiting_blocks_lane, "waiting_blocks_lane", simulate_queues},
      {Mutant::old_session_acknowledges, "old_session_acknowledges", simulate_queues},
      {Mutant::charged_without_proof, "charged_without_proof", refuse_every_statement},
      {Mutant::producer_id_per_partition, "producer_id_per_partition", simulate_topic},
  };
  return all;
}

class Mutation : public ::testing::TestWithParam<Planted> {
 protected:
  void TearDown() override { active_mutant = Mutant::none; }
};

TEST_P(Mutation, is_found) {
  active_mutant = GetParam().mutant;
  const Problems problems = GetParam().find();
  EXPECT_FALSE(problems.empty()) << "nobody noticed the bug " << GetParam().name;
  for (const std::string& problem : problems) std::printf("%s\n", problem.c_str());
}

INSTANTIATE_TEST_SUITE_P(Bug, Mutation, ::testing::ValuesIn(all_planted()),
                         [](const auto& planted) { return std::string(planted.param.name); });

TEST(Mutation, without_a_bug_nothing_is_found) {
  EXPECT_EQ(simulate(500), Problems{});
  EXPECT_EQ(flip_bits(), Problems{});
  EXPECT_EQ(lose_indexes(), Problems{});
  EXPECT_EQ(open_unsafe_database(), Problems{});
  EXPECT_EQ(simulate_claims(), Problems{});
  EXPECT_EQ(simulate_relays(), Problems{});
  EXPECT_EQ(claim_forgotten(), Problems{});
  EXPECT_EQ(simulate_horizon(300), Problems{});
  EXPECT_EQ(revoke_in_doubt(), Problems{});
  EXPECT_EQ(refuse_every_statement(), Problems{});
  EXPECT_EQ(simulate_later(), Problems{});
  EXPECT_EQ(simulate_doors(300), Problems{});
  EXPECT_EQ(simulate_queues(), Problems{});
  EXPECT_EQ(simulate_topic(), Problems{});
}

TEST(Mutation, every_bug_is_planted) {
  EXPECT_EQ(all_planted().size() + 1, static_cast<std::size_t>(Mutant::count_));
}

}  // namespace
}  // namespace once
