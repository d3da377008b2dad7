// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/pipeline.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/backoff.h"
#include "runtime/due_feed.h"
#include "runtime/event_log.h"
#include "runtime/forgetter.h"
#include "runtime/lag.h"
#include "runtime/lane_thread.h"
#include "runtime/lease_keeper.h"
#include "runtime/parked_share.h"
#include "runtime/store_clock.h"
#include "runtime/watermark.h"
#include "runtime/witness.h"

namespace once {

[[nodiscard]] inline Watermark::Tag tag_of(const Delivery& delivery) {
  return {delivery.session, delivery.offset};
}

// The poller: the thread that calls `run`. It alone talks to the source; it hands batches to the
// lanes, acknowledges what they finish, and keeps ownership, the horizon and the lag up to date.
class Poller final : public Pipeline {
 public:
  Poller(Source& source, Store& store, Handler handler, PipelineOptions options, Clock& clock)
      : source_(source),
        store_(store),
        handler_(std::move(handler)),
        options_(std::move(options)),
        clock_(clock),
        traits_(source.traits()),
        store_clock_(clock),
        events_(options_.observer, clock),
        parked_share_(options_.parked_max),
        lease_keeper_(source),
        forgetter_(store, clock, options_, store_clock_),
        due_feed_(store, clock, options_, may_wait_) {}

  // An effect outside the store is guarded by claims.
  Status open_claims();

  Status run() override;
  void stop() override {
    stopping_ = true;
    wake();
  }
  Statistics statistics() const override;

 private:
  struct Partition {
    std::size_t lane = 0;
    WitnessCheck witness;
    // When lanes do not move the position: of what is settled, and what the store has of it.
    Watermark watermark;
    Position position;
    std::int64_t stored_waiting_ms = -1;
  };
  // What changed hands since the observer was told.
  struct Handover {
    std::vector<std::string> assigned;
    std::vector<std::string> revoked;
  };

  bool by_key() const { return options_.order == Order::key; }
  bool has_positions() const { return traits_.ordered && traits_.replayable; }
  bool lanes_move_positions() const { return has_positions() && !by_key(); }
  bool keeps_order() const { return traits_.ordered || by_key(); }
  // The work comes after the ack.
  bool acks_first() const {
    return options_.semantics == Semantics::at_most_once && !traits_.replayable;
  }

  // Its life: pipeline.cc.
  void start_lanes();
  Status loop();
  Result<Batch> poll();
  Status finish_at_end();
  Status handle(Batch batch);
  Status shut_down(Status outcome);
  bool is_final(const Error& error) const;
  Status check_exhausted() const;
  // Asks the store again for as long as it is away or its answers get lost; `ask` may be repeated.
  template <class Ask>
  auto until_answered(const Ask& ask) -> std::invoke_result_t<Ask>;
  // Ends early when the pipeline is stopped.
  void rest(std::int64_t wait_ms);
  void wake();

  // Which partitions are ours, and from where they are read: poller_partitions.cc.
  Status assigned(std::string_view partition);
  Status revoked(std::string_view partition);
  Status look_for_waiting();
  void tell_handover();
  Result<bool> check_witnesses();
  void drained();
  void drained(const std::string& name, Partition& partition, std::int64_t settled_ms);

  // What lanes get to do: poller_dispatch.cc.
  bool has_room() const;
  bool lanes_idle() const;
  void wait_for_lanes();
  Status dispatch(Batch batch);
  void dispatch_by_key(Batch batch, Partition& partition);
  std::vector<Batch> parts_by_key(const Batch& batch) const;
  void push(std::size_t lane, Batch batch, std::int64_t end_offset, Partition& partition);
  Result<bool> hand_out_due(bool now = false);

  // What lanes have done: poller_news.cc.
  Status collect_news();
  Status finished(const Batch& batch);
  Status given_back(const Lane::GivenBack& message);
  Status heard(const Status& told) const;
  void identified(const Lane::Births& births);
  void extend_leases();
  Status advance_watermarks();
  Status move_position(std::string_view name, Partition& partition, std::int64_t to);
  Status publish(std::string_view name, Partition& partition, const Progress& progress);

  // What nobody tells the poller: poller_look.cc.
  void forget_sometimes();
  void tell_progress();
  void tell_clocks();
  Status look_around();
  Status check_positions(const ScopeRecord& stored) const;
  void look_at_ends(const ScopeRecord* stored);

  Source& source_;
  Store& store_;
  const Handler handler_;
  const PipelineOptions options_;
  Clock& clock_;
  const SourceTraits traits_;
  StoreClock store_clock_;
  Counters counters_;
  EventLog events_;
  ParkedShare parked_share_;
  LeaseKeeper lease_keeper_;
  Forgetter forgetter_;
  std::atomic<bool> may_wait_{false};  // messages may wait in the store
  DueFeed due_feed_;
  std::size_t due_batches_ = 0;      // of messages that have waited, in the lanes
  std::uint64_t deferred_seen_ = 0;  // as the counter was when the feed was told
  std::unique_ptr<Claims> claims_;
  std::map<std::string, Partition, std::less<>> partitions_;
  std::vector<std::unique_ptr<LaneThread>> lanes_;
  std::size_t next_lane_ = 0;
  std::uint32_t poll_failures_ = 0;
  bool has_begun_ = false;  // messages have come
  std::int64_t forget_after_ns_ = 0;
  std::int64_t look_around_after_ns_ = 0;
  Handover handover_;
  Lag lag_;
  bool ended_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> partition_count_{0};
  std::mutex news_mutex_;  // taken with no other lock
  std::condition_variable news_;
  bool woken_ = false;  // guarded by news_mutex_: there is news that the poller has not looked at
};

template <class Ask>
auto Poller::until_answered(const Ask& ask) -> std::invoke_result_t<Ask> {
  for (std::uint32_t failures = 1;; ++failures) {
    auto answer = ask();
    if (answer) events_.back(the_store, {}, this);
    if (answer || stopping_) return answer;
    if (is_final(answer.error())) return answer;
    events_.away(the_store, {}, this, answer.error());
    ONCE_TRY(check_exhausted());
    rest(backoff_ms(options_.retry, failures));
  }
}

}  // namespace once
