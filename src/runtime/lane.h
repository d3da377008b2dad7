// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/pipeline.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/counters.h"
#include "runtime/event_log.h"
#include "runtime/parked_share.h"
#include "runtime/statements.h"
#include "runtime/store_clock.h"
#include "runtime/watched_transaction.h"
#include "runtime/watermark.h"

namespace once {

// What a lane works with. All of it outlives the lane.
struct LaneParts {
  Store& store;
  Clock& clock;
  const Handler& handler;
  const PipelineOptions& options;
  Counters& counters;
  bool positions = true;     // advance positions here; false when lanes share partitions
  Claims* claims = nullptr;  // for a handler whose effect is outside the store
  const StoreClock* store_clock = nullptr;  // unset: births are believed as they are
  EventLog* events = nullptr;               // unset: nobody is told
  ParkedShare* parked_share = nullptr;
  // Of all lanes that are made of these parts.
  std::shared_ptr<PassedStatements> passed = std::make_shared<PassedStatements>();
  // Told inside of the transaction what becomes of a message, recorded or not; for rehearsals.
  std::function<void(const Outcome&)> on_outcome = {};
  std::string source = {};  // its name, for copies of parked messages
  // Whether messages of this scope may wait in the store: while not, nobody asks whether those of a
  // key do. Set by the lane that puts one off. Unset: they may.
  std::atomic<bool>* may_wait = nullptr;
  // Whether a message that waits holds back those behind it in its partition. If not, it leaves its
  // batch and waits by itself, and at most `waiting_max` do: with `gives_back`, more of them are
  // given back to the source; else they take up room in the lane's queue.
  bool ordered = true;
  std::size_t waiting_max = 1000;
  bool gives_back = false;
};

// The heart of Once, without a thread: takes deliveries in order and makes each count once.
//
// Every `step` is at most one attempt: begin, advance, admit, handler, commit. When a message
// spoils the attempt everything is rolled back, the messages before it are done in an attempt of
// their own, and the culprit is retried, or settled as decided. So one bad message never costs
// another its effect, and the order is kept. A commit with an unknown outcome is looked up in the
// store before anything else is done.
//
// Used by one thread (the pipeline's) or driven by a simulator. Nothing here survives a crash;
// all truth is in the store.
class Lane {
 public:
  explicit Lane(const LaneParts& parts);

  // A message that the source is to deliver again.
  struct GivenBack {
    Batch batch;
    std::int64_t delay_ms = 0;
  };
  struct Step {
    bool worked = false;          // deliveries left the queue
    std::int64_t wait_ms = 0;     // nothing can be done before this time has passed
    std::vector<Batch> finished;  // every delivery of these is settled: they can be acknowledged
    std::vector<GivenBack> given_back;
  };

  // The batch of messages that waited in the store: of no partition, never acknowledged, and not
  // part of any position.
  static bool is_deferred(const Batch& batch) {
    return !batch.deliveries.empty() && batch.deliveries.front().deferral.number != 0;
  }

  struct Task;
  using Prepared = std::unique_ptr<Task>;

  // Finds out what the messages of a batch are. The dearest thing a lane does without the store,
  // so any thread may do it; everything else is the lane's own thread's.
  Prepared prepare(Batch batch) const;

  // The births of its messages as far as they count for the horizon; -1: not.
  struct Births {
    std::string_view partition;
    std::vector<std::pair<Watermark::Tag, std::int64_t>> born_ms = {};
  };
  static Births births(const Task& task);
  // Their ids; empty: a message has none.
  static std::vector<std::string> ids(const Task& task);

  // This partition is ours from `position` on.
  void own(std::string_view partition, const Position& position);
  // It is another's: what is queued of it is dropped.
  void disown(std::string_view partition);
  void push(Prepared task);
  // The source has said that it has nothing more of this partition, after births up to `settled_ms`
  // were settled elsewhere. Once all of it is settled, the store is told that this partition has
  // come as far: partitions without traffic must not hold the horizon back.
  void drained(std::string_view partition, std::int64_t settled_ms);
  void push(Batch batch) { push(prepare(std::move(batch))); }
  // An error is final for this lane: fenced, misconfigured or corrupt.
  [[nodiscard]] Result<Step> step();

  bool idle() const { return tasks_.empty() && !doubt_ && !has_news(); }
  // Those that take up room, and those that have only begun to be settled or wait by themselves,
  // too.
  std::size_t batches_queued() const;
  std::size_t batches_held() const { return tasks_.size(); }
  // What is queued and not settled, to be given back to the source.
  std::vector<Batch> give_back();

 private:
  struct Owned {
    std::string name;
    Position position;
    std::int64_t selected_end = -1;  // the position after what this attempt has selected
    bool blocked = false;            // during one selection: its next message has to wait
    bool doubted = false;            // a commit of ours was not there when we looked; it may come
    bool leaving = false;            // disowned; only kept until a commit in doubt is known
    std::int64_t settled_ms = -1;    // the youngest birth that was settled here ...
    std::int64_t selected_ms = -1;   // ... and will be if this attempt succeeds
    std::optional<std::int64_t> drained_ms;         // as `drained` said; unset: told, or not so
    Progress offered;                               // by the latest `advance` ...
    std::optional<std::int64_t> stored_waiting_ms;  // ... and what of it is committed
  };

  // What the store said of a handler's statement that it ran for one message alone, although it
  // sounds as if it would say so to every message (lane_suspect.cc).
  struct Suspicion {
    Error why;
    Statements ran;              // for this message, the refused one among them
    std::uint32_t failures = 0;  // in a row, alone, with this error
    std::uint32_t waits = 0;     // for other messages that could show whose fault it is
    bool charged = false;        // it is going to be parked, if another message passes
    bool others_pass = false;    // another did, after it had failed
    bool on_record = false;      // others did earlier in this run, and none is there now
  };

  // One delivery on its way.
  struct Item {
    Delivery delivery;
    std::string id;
    Fingerprint fingerprint;
    std::int64_t born_ms = 0;
    std::int64_t progress_ms = -1;  // its birth as it counts for the horizon; -1: it does not
    std::int64_t oldest_ms = -1;    // the oldest such birth among it and those behind it
    std::int64_t end_offset = 0;    // the position once this is done
    Task* task = nullptr;
    std::optional<Outcome> decided;    // settle this instead of calling the handler
    std::string park_tag = "handler";  // if it is parked: the kind of reason
    std::unique_ptr<Suspicion> suspicion;
    std::optional<Verdict> outside;  // what its claim said; fresh: with the effect's outcome
    std::uint32_t attempts = 0;      // that failed
    std::uint32_t refused = 0;       // how often the store refused it when it was alone
    std::int64_t not_before_ns = 0;  // in the clock's ticks
    bool records_id = true;          // in the ledger, if it has one
    bool ahead = false;              // born in the future, and parked for it
    bool passed = false;             // not wanted: nothing is recorded but the position
    bool settled = false;
    bool apart = false;  // it has left its batch, to wait by itself
    bool deferred() const { return delivery.deferral.number != 0; }  // it waited in the store
    bool charged() const { return suspicion && suspicion->charged; }
    bool halfway = false;  // of the two transactions of the weaker semantics, one is committed
  };

  // What one transaction does. The strongest semantics does both in one, the others in two.
  struct Content {
    bool advance = false;
    bool work = false;
  };
  // A commit of `selected_` whose outcome is not known.
  struct Doubt {
    Content content;
    Error why;
  };

  // What an attempt did, counted only once it is committed.
  struct Tally : Counts<std::uint64_t> {
    struct Parked {
      std::string_view partition;
      std::int64_t offset;
      std::string reason;
    };
    std::vector<Parked> parked_messages = {};
  };

  // The queue (lane.cc).
  Owned& owned(std::string_view partition);
  bool is_passed_over(Item& item) const;
  void identify(Item& item) const;
  void identify_deferred(Item& item) const;
  void count_birth(Item& item, std::int64_t born_ms) const;
  void select();
  void select_from(Task& task, std::int64_t now_ns, std::int64_t& earliest_ns);
  void retire(Step& step);
  template <class Keep>
  static void keep_deliveries(Task& task, const Keep& keep);

  // An attempt and what follows from it (lane.cc).
  Status attempt();
  Status attempt_once(Content content);
  void committed(Content content);
  void settled();
  Status failed(const Error& error, Content content);
  Status isolate(const Error& error);
  Status resolve_doubt();
  void drop_leaving();
  using Positions = std::vector<std::pair<Owned*, Position>>;
  Result<Positions> positions_now() const;
  bool adopt(const Positions& now);
  Result<bool> arrived_late();
  void blame(const Culprit& culprit);
  void wait(Item& item, std::int64_t wait_ms);
  void set_apart(Item& item, std::int64_t wait_ms);
  std::size_t waiting_count() const;
  std::string drop_hint(const Item& item, std::string_view reason) const;
  Status check_can_wait(const Outcome& outcome) const;
  void decide_later(Item& item, const Outcome& outcome);
  void wait_for(const Dependency& on, const Error& why);
  void wait_for_store(const Error& why) { wait_for(the_store, why); }
  void store_answered();
  void tell_parked();
  void tell_retried(const Item& item, std::string_view reason);

  // A statement that every message would fail with, or only this one (lane_suspect.cc).
  std::size_t charged_count() const;
  std::size_t passing_count() const;
  bool lasts(const Error& error);
  void suspect(const Error& error);
  void charge(Item& item, const Error& error);
  void release(Item& item);
  Status check_proof(Transaction& transaction);
  Result<bool> await_proof();
  void wait_for_others(const std::vector<Item*>& charged);
  Error named(Error error, const Item& item) const;
  Error named(Error error) const;

  // What the store knows of a partition beside its position (lane_progress.cc).
  std::int64_t waiting_ms(const Owned& partition, std::size_t Task::*from) const;
  Progress progress_after(const Item& last) const;
  bool is_stuck(const Owned& partition) const;
  bool is_drained(const Owned& partition) const;
  bool has_news() const;
  Status publish();
  Status publish(const Owned& partition, const Progress& progress);

  // Inside the transaction (lane_work.cc).
  Status transact(Content content);
  Status advance_all(Transaction& transaction);
  Result<std::vector<Verdict>> admit_all(Transaction& transaction);
  Status work_all(Transaction& transaction, std::span<const Verdict> verdicts);
  Status work_single(Transaction& transaction, std::span<const Verdict> verdicts);
  Status work_batched(Transaction& transaction, std::span<const Verdict> verdicts);
  std::optional<Outcome> outcome_without_handler(Item& item, const Verdict& verdict);
  Status work_fresh(std::span<Work> fresh, Transaction& transaction);
  Status undo_refused(std::span<const Work> fresh, const Writes& writes);
  std::string mismatch_reason(const Item& item, const Verdict& verdict) const;
  Result<Outcome> call_each(const Item& item, Transaction& transaction);
  Result<std::optional<Outcome>> call_batched(std::span<Work> work, Transaction& transaction);
  void check_all_recorded(std::span<const Verdict> verdicts) const;
  std::string redacted(std::string_view reason) const;
  Outcome redacted(Outcome outcome) const;
  Status settle(std::size_t index, const Outcome& decided, Transaction& transaction);
  Status copy_parked(const Item& item, const Outcome& outcome, Transaction& transaction);
  Status put_off(const Item& item, const Outcome& outcome, Transaction& transaction);
  Status settle_known(std::size_t index, const Outcome& outcome, const Verdict& verdict,
                      Transaction& transaction);
  Status check_keys_were_asked(std::span<const Verdict> verdicts);
  bool is_ordered_by_key(const Delivery& delivery) const;
  std::string_view asked_key(const Item& item) const;
  std::optional<Outcome> wait_behind(const Item& item, const Verdict& verdict) const;
  Status cut_at_freed_id(std::span<const Verdict> verdicts);

  // Before the transaction, for effects outside the store (lane_outside.cc).
  struct Finished;
  Status work_outside();
  Status run_claimed(std::size_t index, ClaimVerdict verdict, Finished& finished);
  void wait_for_other(Item& item, const ClaimVerdict& verdict);
  Status run_effect(std::size_t index, Ticket ticket, Finished& finished);
  Status effect_failed(std::size_t index, Ticket ticket, const Error& error);
  Status give_up_effect(std::size_t index, Ticket& ticket, const Outcome& outcome);
  Status settle_finished(Finished& finished);
  ClaimRequest request_for(const Item& item) const;

  LaneParts parts_;
  std::map<std::string, std::unique_ptr<Owned>, std::less<>> owned_;
  std::vector<std::unique_ptr<Owned>> leaving_;
  std::deque<std::unique_ptr<Task>> tasks_;
  std::vector<GivenBack> given_back_;  // to be told by the next step
  std::vector<Item*> selected_;
  std::optional<Doubt> doubt_;
  Tally tally_;
  Statements ran_;            // of this attempt: what handlers have run
  std::size_t unproven_ = 0;  // so many pass together, and run nothing that a charged one did
  std::string lasting_;       // how a statement failed in the last attempts, masked ...
  std::uint32_t lasting_count_ = 0;  // ... and in how many
  std::size_t recorded_ = 0;         // of this attempt: outcomes that were settled
  std::vector<std::size_t> freed_;   // of this attempt: those whose ids stay free
  std::map<std::string, std::int64_t, std::less<>> put_off_;  // ... keys, and in which time
  std::set<std::int64_t> due_done_;   // ... deferrals that are not put off again
  std::optional<std::size_t> cut_;    // this attempt has to end before this message
  bool spoiled_by_someone_ = false;   // a batch handler failed and did not say for which message
  bool undone_ = false;               // what was decided or learned now asks for another attempt
  std::size_t limit_;                 // how many messages the next attempt takes
  std::uint32_t store_failures_ = 0;  // in a row
  std::int64_t not_before_ns_ = 0;    // because of the store
  std::int64_t wait_until_ns_ = 0;    // the earliest time at which something can be selected
};

// A batch on its way.
struct Lane::Task {
  Batch batch;
  std::vector<Item> items;
  std::size_t next = 0;      // items before it are settled
  std::size_t selected = 0;  // items before it are settled or part of this attempt
  Owned* owned = nullptr;
  bool waits = false;  // its only message left another batch

  // Goes on to the first item that is still to be settled here.
  void go_on() {
    while (next < items.size() && (items[next].settled || items[next].apart)) ++next;
  }
  bool is_done() const { return next == items.size(); }
};

}  // namespace once
