// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/pipeline.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "base/exception.h"
#include "base/failpoint.h"
#include "model/gone.h"
#include "model/ledger.h"
#include "model/witness.h"
#include "runtime/backoff.h"
#include "runtime/batch_check.h"
#include "runtime/due_feed.h"
#include "runtime/forgetter.h"
#include "runtime/lane_thread.h"
#include "runtime/lease_keeper.h"
#include "runtime/spread.h"
#include "runtime/watermark.h"
#include "runtime/witness.h"

namespace once {
namespace {

constexpr std::int64_t forget_interval_ns = 500'000'000;
constexpr std::int64_t poller_wait_ms = 20;  // the poller looks around at least this often
constexpr std::int64_t look_around_ns = 2'000'000'000;
// Clocks that differ by less are usual.
constexpr std::int64_t clocks_differ_ms = 60'000;

Watermark::Tag tag_of(const Delivery& delivery) { return {delivery.session, delivery.offset}; }

// The poller: the thread that calls `run`. It alone talks to the source; it hands batches to the
// lanes, acknowledges what they finish, and keeps ownership, the horizon and the lag up to date.
class ThreadedPipeline final : public Pipeline {
 public:
  ThreadedPipeline(Source& source, Store& store, Handler handler, PipelineOptions options,
                   Clock& clock)
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
    std::int64_t delivered_end = -1;
    std::int64_t handled_end = -1;  // the end of what was finished
    std::int64_t available = -1;    // where it ends, as far as the source counts messages ...
    std::int64_t end_seen = -1;     // ... and as it was told
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

  void start_lanes();
  Status loop();
  Status finish_at_end();
  bool is_final(const Error& error) const;
  Status handle(Batch batch);
  Result<bool> check_witnesses();
  void drained();
  Status assigned(std::string_view partition);
  void drained(const std::string& name, Partition& partition, std::int64_t settled_ms);
  Status move_position(std::string_view name, Partition& partition, std::int64_t to);
  Status publish(std::string_view name, Partition& partition, const Progress& progress);
  // Asks the store again for as long as it is away or its answers get lost; `ask` may be repeated.
  template <class Ask>
  auto until_answered(const Ask& ask) -> std::invoke_result_t<Ask>;
  Status look_for_waiting();
  Status revoked(std::string_view partition);
  Status dispatch(Batch batch);
  void dispatch_by_key(Batch batch, Partition& partition);
  std::vector<Batch> parts_by_key(const Batch& batch) const;
  Result<bool> hand_out_due(bool now = false);
  void push(std::size_t lane, Batch batch, std::int64_t end_offset, Partition& partition);
  Status collect_news();
  Status finished(const Batch& batch);
  Status given_back(const Lane::GivenBack& message);
  Status heard(const Status& told) const;
  void identified(const Lane::Births& births);
  void extend_leases();
  Status advance_watermarks();
  void tell_progress();
  void forget_sometimes();
  void update_lag();
  // What nobody tells the poller: whether a position was set by hand, where the topic ends, and how
  // far other owners have come.
  Status look_around();
  Status check_positions(const ScopeRecord& stored) const;
  void look_at_ends(const std::optional<ScopeRecord>& stored);
  void lag_of_others(const std::vector<PartitionEnd>& ends,
                     const std::optional<ScopeRecord>& stored);
  void tell_handover();
  void tell_clocks();
  bool has_room() const;
  bool lanes_idle() const;
  void wait_for_lanes();
  // Ends early when the pipeline is stopped.
  void rest(std::int64_t wait_ms);
  Status shut_down(Status outcome);
  void wake();

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
  std::map<std::string, std::int64_t, std::less<>> others_lag_;  // by partition, at the last look
  Handover handover_;
  bool ended_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> lag_{-1};
  std::atomic<std::size_t> lag_partitions_{0};
  std::atomic<std::size_t> partition_count_{0};
  std::mutex news_mutex_;  // taken with no other lock
  std::condition_variable news_;
  bool woken_ = false;  // guarded by news_mutex_: there is news that the poller has not looked at
};

Status ThreadedPipeline::open_claims() {
  if (!handler_.outside()) return {};
  ClaimsOptions options;
  options.lease_ms = handler_.outside()->lease_ms;
  options.after_loss = handler_.outside()->after_loss;
  options.resolver = handler_.outside()->ask;
  claims_ = ONCE_TRY(Claims::make(store_, std::move(options), clock_));
  return {};
}

template <class Ask>
auto ThreadedPipeline::until_answered(const Ask& ask) -> std::invoke_result_t<Ask> {
  for (std::uint32_t failures = 1;; ++failures) {
    auto answer = ask();
    if (answer) events_.back(the_store, {}, this);
    if (answer || stopping_) return answer;
    if (is_final(answer.error())) return answer;
    events_.away(the_store, {}, this, answer.error());
    rest(backoff_ms(options_.retry, failures));
  }
}

void ThreadedPipeline::start_lanes() {
  const LaneParts parts{.store = store_,
                        .clock = clock_,
                        .handler = handler_,
                        .options = options_,
                        .counters = counters_,
                        .positions = lanes_move_positions(),
                        .claims = claims_.get(),
                        .store_clock = &store_clock_,
                        .events = &events_,
                        .parked_share = &parked_share_,
                        .source = traits_.name,
                        .may_wait = &may_wait_,
                        .ordered = keeps_order(),
                        .waiting_max = waiting_max_per_lane(traits_, options_),
                        .gives_back = traits_.delay_ms_max > 0 && !acks_first()};
  const auto identify =
      options_.lanes > 1 ? LaneThread::Identify::by_lane : LaneThread::Identify::by_poller;
  for (std::size_t i = 0; i < options_.lanes; ++i)
    lanes_.push_back(std::make_unique<LaneThread>(parts, identify, [this] { wake(); }));
}

Status ThreadedPipeline::run() {
  try {
    start_lanes();
    Status ran = shut_down(loop());
    if (!ran) ran = fail(with_way_on(std::move(ran).error(), {.scope = options_.scope}));
    if (!ran && ran.error().tag == "fenced")
      events_.tell({.severity = Severity::warning,
                    .kind = EventKind::fenced,
                    .text = ran.error().text,
                    .tag = ran.error().tag});
    events_.finish();
    return ran;
  } catch (const std::exception& exception) {
    lanes_.clear();  // they end before what they talk to is gone
    return fail(error_from_exception(exception));
  }
}

// Resources that are not there even for the first messages do not come back by waiting: the limits
// of this process are too low.
bool ThreadedPipeline::is_final(const Error& error) const {
  return !is_transient(error.remedy) || (error.tag == "exhausted" && !has_begun_);
}

Status ThreadedPipeline::loop() {
  while (!stopping_) {
    ONCE_TRY(collect_news());
    forget_sometimes();
    extend_leases();
    ONCE_TRY(look_around());
    events_.tick();
    if (ended_) {
      if (lanes_idle() && !ONCE_TRY(hand_out_due(true))) return finish_at_end();
      wait_for_lanes();
      continue;
    }
    ONCE_TRY(hand_out_due());
    const bool full = !has_room();
    if (full) wait_for_lanes();
    const std::size_t count_max = full            ? 0
                                  : keeps_order() ? options_.batch_count_max
                                                  : poll_count_max(traits_, options_);
    auto batch = source_.poll(count_max, options_.batch_wait_ms);
    if (batch) {
      check_batch(*batch, traits_.ordered, count_max);
      has_begun_ = has_begun_ || !batch->deliveries.empty();
      poll_failures_ = 0;
      events_.back(the_source, {}, this);
      ONCE_TRY(handle(std::move(*batch)));
    } else if (is_final(batch.error())) {
      return fail(std::move(batch).error());
    } else {  // polling again is what a recheck would do
      events_.away(the_source, {}, this, batch.error());
      rest(backoff_ms(options_.retry, ++poll_failures_));
    }
  }
  return {};
}

// Of a message that waits in the store nobody knows yet what becomes of it.
Status ThreadedPipeline::finish_at_end() {
  ONCE_TRY(collect_news());
  if (counters_.deferred > 0) return {};
  if (auto too_many = parked_share_.exceeded_at_end(options_.scope))
    return fail(std::move(*too_many));
  return {};
}

// Messages that waited in the store and are due, to the lanes of their keys. Whether there were
// any, or the store could not be asked; then it is asked again later.
Result<bool> ThreadedPipeline::hand_out_due(bool now) {
  if (due_batches_ > 0) return true;
  const std::uint64_t deferred = counters_.deferred;
  if (std::exchange(deferred_seen_, deferred) != deferred) due_feed_.notice_deferred();
  auto due = due_feed_.poll(now);
  if (!due) {
    if (due.error().remedy == Remedy::stop) return fail(std::move(due).error());
    events_.away(the_store, {}, &due_feed_, due.error());
    return true;
  }
  events_.back(the_store, {}, &due_feed_);
  if (!*due) return false;
  auto parts = parts_by_key(**due);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].deliveries.empty()) continue;
    lanes_[i]->push(std::move(parts[i]));
    ++due_batches_;
  }
  return true;
}

Status ThreadedPipeline::handle(Batch batch) {
  const bool at_end = batch.drained || batch.event == Batch::Event::end;
  if (at_end && batch.deliveries.empty() && !ONCE_TRY(check_witnesses())) return {};
  if (batch.drained) drained();
  switch (batch.event) {
    case Batch::Event::assigned: return assigned(batch.partition);
    case Batch::Event::revoked: return revoked(batch.partition);
    case Batch::Event::end: ended_ = true; return {};
    case Batch::Event::messages: break;
  }
  tell_handover();
  return batch.deliveries.empty() ? Status{} : dispatch(std::move(batch));
}

// Nothing more is there. Whether every partition is known to be the one that its position belongs
// to; if not, the source goes on.
Result<bool> ThreadedPipeline::check_witnesses() {
  SourceReplay* const replay = source_.replay();
  if (replay == nullptr) return true;  // without positions there are no witnesses
  bool known = true;
  for (auto& [name, partition] : partitions_)
    known = ONCE_TRY(partition.witness.check_end(options_.scope, *replay, name)) && known;
  return known;
}

// Partitions change hands in groups: they are told together, when the source has nothing more to
// say about them.
void ThreadedPipeline::tell_handover() {
  const auto tell = [this](EventKind kind, std::string_view verb, std::vector<std::string>& names) {
    if (names.empty()) return;
    const std::string list = list_of(names);
    events_.tell({.severity = Severity::info,
                  .kind = kind,
                  .text = fmt::format("{} {}", verb, list),
                  .subject = list});
    names.clear();
  };
  tell(EventKind::partitions_revoked, "no longer owns", handover_.revoked);
  tell(EventKind::partitions_assigned, "owns", handover_.assigned);
  if (!partitions_.empty()) return events_.back(the_group, {}, this);
  static const Error nothing_assigned{
      Remedy::retry, "group",
      "none is assigned to this process; other members of its group have them, or the group is "
      "about to share them out",
      std::nullopt};
  events_.away(the_group, {}, this, nothing_assigned);
}

// Everything that is there was delivered; what the source counts beyond it are no messages.
void ThreadedPipeline::drained() {
  for (auto& [name, partition] : partitions_) {
    if (traits_.ordered) partition.available = std::max<std::int64_t>(partition.delivered_end, 0);
    if (const auto settled_ms = forgetter_.take_held_back(name))
      drained(name, partition, *settled_ms);
  }
  update_lag();
  if (options_.stop_at_end && lanes_idle()) ended_ = true;
}

// A partition without traffic must not hold the horizon back: once all of it is settled, the store
// is told that it has come as far as the others. An error changes nothing; it is told later.
void ThreadedPipeline::drained(const std::string& name, Partition& partition,
                               std::int64_t settled_ms) {
  if (lanes_move_positions()) return lanes_[partition.lane]->drained(name, settled_ms);
  if (!partition.watermark.idle()) return;
  Progress progress = partition.watermark.progress();
  progress.settled_ms = std::max(progress.settled_ms, settled_ms);
  progress.drained = true;
  if (has_positions())
    (void)publish(name, partition, progress);
  else
    forgetter_.observe(name, progress);
}

// We are the owner from now on, and go on where the committed effects end, whatever the broker
// believes.
Status ThreadedPipeline::assigned(std::string_view name) {
  Partition& partition = partitions_[std::string(name)];
  partition.lane = next_lane_++ % lanes_.size();
  handover_.assigned.emplace_back(name);
  others_lag_.erase(std::string(name));
  const SourceTraits now = source_.traits();
  partition_count_ = now.partitions.size();
  forgetter_.set_topic(now.partitions);
  forgetter_.own(name);
  // The store's clock is known before the first message is judged by it.
  ONCE_TRY(until_answered([&] { return forgetter_.look(); }));
  tell_clocks();
  if (!traits_.replayable) return look_for_waiting();
  // Taking it again does no harm: the fence only grows.
  partition.position =
      ONCE_TRY(until_answered([&] { return store_.take(options_.scope, name, now.identity); }));
  partition.delivered_end = partition.position.offset;
  partition.handled_end = partition.position.offset;
  partition.witness = WitnessCheck(partition.position, now, name);
  ONCE_TRY(partition.witness.seek(*source_.replay(), name));
  ONCE_TRY(look_for_waiting());
  if (lanes_move_positions()) lanes_[partition.lane]->own(std::string(name), partition.position);
  return {};
}

// Whether messages wait in the store that an earlier owner has put off: those of this partition may
// have to wait behind them. Asked when the partition is ours: what the earlier owner puts off after
// that is delivered to us, too, and the lane is told by its record.
Status ThreadedPipeline::look_for_waiting() {
  if (!by_key()) return {};
  return until_answered([&] { return due_feed_.look(); });
}

Status ThreadedPipeline::revoked(std::string_view name) {
  handover_.revoked.emplace_back(name);
  for (const auto& lane : lanes_) lane->disown(std::string(name));
  forgetter_.disown(name);
  lease_keeper_.drop(name);
  if (const auto found = partitions_.find(name); found != partitions_.end())
    partitions_.erase(found);
  return {};
}

Status ThreadedPipeline::dispatch(Batch batch) {
  const auto found = partitions_.find(batch.partition);
  if (found == partitions_.end()) return heard(source_.release(batch.deliveries));
  Partition& partition = found->second;
  ONCE_TRY(partition.witness.check(options_.scope, batch));
  partition.delivered_end = std::max(partition.delivered_end, batch.end_offset);
  if (traits_.ordered && batch.available_offset >= 0)
    partition.available = partition.end_seen = batch.available_offset;
  if (batch.deliveries.empty()) return {};
  events_.back(the_source, {}, &others_lag_);
  if (acks_first())
    ONCE_TRY(source_.ack(batch.deliveries));
  else
    lease_keeper_.took(batch.deliveries, clock_.ticks_ns());
  if (by_key()) {
    dispatch_by_key(std::move(batch), partition);
  } else {
    const std::int64_t end_offset = batch.end_offset;
    const std::size_t lane = keeps_order() ? partition.lane : least_loaded(lanes_, next_lane_++);
    push(lane, std::move(batch), end_offset, partition);
  }
  return {};
}

// Messages of one key go to one lane; all lanes share the batch's memory.
std::vector<Batch> ThreadedPipeline::parts_by_key(const Batch& batch) const {
  std::vector<Batch> parts(lanes_.size());
  for (Batch& part : parts) {
    part.partition = batch.partition;
    part.memory = batch.memory;
  }
  for (const Delivery& delivery : batch.deliveries)
    parts[std::hash<std::string_view>{}(delivery.key) % lanes_.size()].deliveries.push_back(
        delivery);
  return parts;
}

void ThreadedPipeline::dispatch_by_key(Batch batch, Partition& partition) {
  const std::int64_t last = batch.deliveries.back().offset;
  auto parts = parts_by_key(batch);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].deliveries.empty()) continue;
    const bool has_last = parts[i].deliveries.back().offset == last;
    push(i, std::move(parts[i]), has_last ? batch.end_offset : -1, partition);
  }
}

// `end_offset` is the position behind the last of these; -1: the next offset.
void ThreadedPipeline::push(std::size_t lane, Batch batch, std::int64_t end_offset,
                            Partition& partition) {
  if (!lanes_move_positions())
    for (const Delivery& delivery : batch.deliveries) {
      const bool last = &delivery == &batch.deliveries.back();
      partition.watermark.started(
          tag_of(delivery), has_positions() ? witness_of(delivery) : Witness{delivery.offset, 0},
          last && end_offset >= 0 ? end_offset : delivery.offset + 1);
    }
  lanes_[lane]->push(std::move(batch));
}

Status ThreadedPipeline::collect_news() {
  for (const auto& lane : lanes_) {
    const LaneThread::News news = lane->take_news();
    for (const Lane::Births& births : news.identified) identified(births);
    for (const Batch& batch : news.finished) ONCE_TRY(finished(batch));
    for (const Lane::GivenBack& message : news.given_back) ONCE_TRY(given_back(message));
    if (news.failure) return fail(*news.failure);
  }
  if (auto too_many = parked_share_.exceeded(options_.scope)) return fail(std::move(*too_many));
  ONCE_TRY(advance_watermarks());
  update_lag();
  return {};
}

void ThreadedPipeline::identified(const Lane::Births& births) {
  const auto found = partitions_.find(births.partition);
  if (found == partitions_.end()) return;  // taken away since
  for (const auto& [tag, born_ms] : births.born_ms)
    found->second.watermark.identified(tag, born_ms);
}

// What the source did not hear of comes again in any case, and is known then.
Status ThreadedPipeline::heard(const Status& told) const {
  return told || is_final(told.error()) ? told : Status{};
}

// It comes again, here or elsewhere.
Status ThreadedPipeline::given_back(const Lane::GivenBack& message) {
  lease_keeper_.let_go(message.batch.deliveries);
  if (const auto found = partitions_.find(message.batch.partition); found != partitions_.end())
    for (const Delivery& delivery : message.batch.deliveries)
      found->second.watermark.given_back(tag_of(delivery));
  return heard(
      source_.release(message.batch.deliveries, std::min(message.delay_ms, traits_.delay_ms_max)));
}

// An error changes nothing: what is due is due again, and what is away is told by a poll.
void ThreadedPipeline::extend_leases() { (void)lease_keeper_.step(clock_.ticks_ns()); }

Status ThreadedPipeline::finished(const Batch& batch) {
  if (Lane::is_deferred(batch)) {
    --due_batches_;
    return {};
  }
  lease_keeper_.let_go(batch.deliveries);
  const auto found = partitions_.find(batch.partition);
  if (found == partitions_.end()) return {};  // taken away since
  Partition& partition = found->second;
  if (!batch.deliveries.empty())
    partition.handled_end =
        std::max({partition.handled_end, batch.end_offset, batch.deliveries.back().offset + 1});
  if (by_key() && traits_.ordered) {
    for (const Delivery& delivery : batch.deliveries) partition.watermark.settled(tag_of(delivery));
    return {};  // acknowledged with the watermark
  }
  if (!has_positions())
    for (const Delivery& delivery : batch.deliveries)
      partition.watermark.settled_apart(tag_of(delivery));
  if (acks_first()) return {};
  ONCE_TRY(heard(source_.ack(batch.deliveries)));
  ONCE_POINT(lane_after_ack);
  return {};
}

// Lanes that share a partition do not move its position: it follows them, and after a crash the
// ledger knows what was done beyond it.
Status ThreadedPipeline::advance_watermarks() {
  if (!by_key() || !traits_.ordered) return {};
  for (auto& owned : partitions_) {
    const std::string& name = owned.first;
    Partition& partition = owned.second;
    const auto moved = partition.watermark.take();
    if (!moved) continue;
    if (traits_.replayable)
      ONCE_TRY(until_answered([&] { return move_position(name, partition, *moved); }));
    Delivery last;
    last.partition = name;
    last.offset = *moved - 1;
    ONCE_TRY(heard(source_.ack(std::span(&last, 1))));
  }
  return {};
}

// The position of a partition that lanes share. Whether a commit whose answer was lost has happened
// is read back; another owner's fence stays another's.
Status ThreadedPipeline::move_position(std::string_view name, Partition& partition,
                                       std::int64_t to) {
  Position& position = partition.position;
  const Position now = ONCE_TRY(store_.position(options_.scope, name));
  if (now.fence == position.fence && now.offset == to) {
    position = now;
    return {};
  }
  const Progress progress = partition.watermark.progress();
  auto transaction = ONCE_TRY(store_.begin(options_.scope));
  ONCE_TRY(transaction->advance(name, position, to, progress));
  ONCE_TRY(transaction->commit());
  position.offset = to;
  partition.stored_waiting_ms = progress.waiting_ms;
  return {};
}

// The progress alone, of a partition that lanes share.
Status ThreadedPipeline::publish(std::string_view name, Partition& partition,
                                 const Progress& progress) {
  auto transaction = ONCE_TRY(store_.begin(options_.scope));
  ONCE_TRY(transaction->advance(name, partition.position, partition.position.offset, progress));
  ONCE_TRY(transaction->commit());
  partition.stored_waiting_ms = progress.waiting_ms;
  return {};
}

// Where lanes do not move positions, a message that waits is told here; lanes do it themselves.
void ThreadedPipeline::tell_progress() {
  if (lanes_move_positions()) return;
  for (auto& [name, partition] : partitions_) {
    const Progress progress = partition.watermark.progress();
    if (!has_positions())
      forgetter_.observe(name, progress);
    else if (progress.waiting_ms != partition.stored_waiting_ms && progress.waiting_ms >= 0)
      (void)publish(name, partition, progress);  // if it fails, next time
  }
}

void ThreadedPipeline::forget_sometimes() {
  const std::int64_t now_ns = clock_.ticks_ns();
  if (now_ns < forget_after_ns_) return;
  tell_progress();
  tell_clocks();
  const auto forgotten = forgetter_.step();
  if (forgotten) counters_.forgotten += forgotten->rows;
  // More to forget: soon again, in small steps, so that the lanes get their turn in between. An
  // error changes nothing: what is not forgotten now is forgotten later.
  const bool more = forgotten && forgotten->more;
  forget_after_ns_ = now_ns + (more ? forget_interval_ns / 25 : forget_interval_ns);
}

void ThreadedPipeline::update_lag() {
  std::int64_t lag = 0;
  std::size_t known = others_lag_.size();
  for (const auto& [name, others] : others_lag_) lag += others;
  for (const auto& [name, partition] : partitions_) {
    if (partition.available < 0) continue;
    ++known;
    lag += std::max<std::int64_t>(
        0, partition.available - std::max<std::int64_t>(partition.handled_end, 0));
  }
  lag_ = known == 0 ? -1 : lag;
  lag_partitions_ = known;
}

Status ThreadedPipeline::look_around() {
  if (clock_.ticks_ns() < look_around_after_ns_ || source_.replay() == nullptr) return {};
  std::optional<ScopeRecord> stored;
  if (Records* const records = store_.records(); records != nullptr && has_positions())
    if (auto described = records->describe(options_.scope)) stored = std::move(*described);
  if (stored) ONCE_TRY(check_positions(*stored));
  look_at_ends(stored);
  look_around_after_ns_ = clock_.ticks_ns() + look_around_ns;
  return {};
}

// A commit would find it out, but nothing is committed where nothing comes. A person's position is
// told by what it clears. One that another process has taken is not: that process may be of our
// group, and then the source says what is ours.
Status ThreadedPipeline::check_positions(const ScopeRecord& stored) const {
  for (const PartitionRecord& record : stored.partitions) {
    const auto owned = partitions_.find(record.partition);
    if (owned == partitions_.end()) continue;
    const Position& ours = owned->second.position;
    const bool set_by_hand = record.source_identity.empty() && record.position.witness == Witness{};
    if (record.position.fence > ours.fence && set_by_hand)
      return fail(fenced_error(options_.scope, record.partition, ours, record.position));
  }
  return {};
}

void ThreadedPipeline::look_at_ends(const std::optional<ScopeRecord>& stored) {
  const auto ends = source_.replay()->ends();
  if (!ends) {
    // What is wrong for good is told by a poll.
    if (ends.error().remedy == Remedy::retry)
      events_.away(the_source, {}, &others_lag_, ends.error());
    return;
  }
  events_.back(the_source, {}, &others_lag_);
  const SourceTraits now = source_.traits();
  partition_count_ = now.partitions.size();
  forgetter_.confirm_topic(now.partitions);
  for (const PartitionEnd& end : *ends) {
    const auto found = partitions_.find(end.partition);
    // What was counted once and turned out to be no message is not counted again.
    if (found == partitions_.end() || end.offset <= found->second.end_seen) continue;
    found->second.available = found->second.end_seen = end.offset;
  }
  lag_of_others(*ends, stored);
  update_lag();
}

void ThreadedPipeline::lag_of_others(const std::vector<PartitionEnd>& ends,
                                     const std::optional<ScopeRecord>& stored) {
  others_lag_.clear();
  if (!stored) return;
  for (const PartitionEnd& end : ends) {
    if (partitions_.contains(end.partition)) continue;
    const auto record = std::find_if(
        stored->partitions.begin(), stored->partitions.end(),
        [&](const PartitionRecord& candidate) { return candidate.partition == end.partition; });
    const std::int64_t handled =
        record == stored->partitions.end() ? 0 : std::max<std::int64_t>(record->position.offset, 0);
    others_lag_[end.partition] = std::max<std::int64_t>(0, end.offset - handled);
  }
}

void ThreadedPipeline::tell_clocks() {
  if (!store_clock_.is_measured()) return;
  const std::int64_t ahead_ms = store_clock_.now_ms() - clock_.now_ms();
  if (std::abs(ahead_ms) < clocks_differ_ms) return;
  events_.count({.severity = Severity::warning,
                 .kind = EventKind::clocks_differ,
                 .text = fmt::format(
                     "the store's clock is {} s {} this machine's: messages born here look {} than "
                     "they are. Set the clocks, by NTP for example",
                     std::abs(ahead_ms) / 1000, ahead_ms > 0 ? "ahead of" : "behind",
                     ahead_ms > 0 ? "older" : "younger"),
                 .duration_ms = std::abs(ahead_ms)});
}

// In order, the next batch may be for any lane; without order any lane takes it.
bool ThreadedPipeline::has_room() const {
  const auto room = [this](const auto& lane) {
    return lane->queued() < options_.queue_batches_max;
  };
  return keeps_order() ? std::all_of(lanes_.begin(), lanes_.end(), room)
                       : std::any_of(lanes_.begin(), lanes_.end(), room);
}

bool ThreadedPipeline::lanes_idle() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const auto& lane) { return lane->held() == 0; });
}

void ThreadedPipeline::wake() {
  {
    const std::lock_guard lock(news_mutex_);
    woken_ = true;
  }
  news_.notify_all();
}

void ThreadedPipeline::wait_for_lanes() {
  std::unique_lock lock(news_mutex_);
  news_.wait_for(lock, std::chrono::milliseconds(poller_wait_ms), [this] { return woken_; });
  woken_ = false;
}

void ThreadedPipeline::rest(std::int64_t wait_ms) {
  std::unique_lock lock(news_mutex_);
  news_.wait_for(lock, std::chrono::milliseconds(wait_ms), [this] { return stopping_.load(); });
}

// What the lanes are doing is finished, what they have not begun is given back.
Status ThreadedPipeline::shut_down(Status outcome) {
  std::vector<Batch> undone;
  for (const auto& lane : lanes_)
    for (Batch& batch : lane->stop()) undone.push_back(std::move(batch));
  const Status last = collect_news();
  for (const Batch& batch : undone) {
    if (Lane::is_deferred(batch)) continue;  // it waits in the store, as before
    lease_keeper_.let_go(batch.deliveries);
    const Status released = heard(source_.release(batch.deliveries));
    if (!released && outcome) outcome = released;
  }
  lanes_.clear();
  if (outcome && !last) return last;
  return outcome;
}

Statistics ThreadedPipeline::statistics() const {
  Statistics statistics = counters_.snapshot();
  statistics.lag = lag_;
  statistics.lag_partitions = lag_partitions_;
  statistics.partitions = partition_count_;
  statistics.waiting = events_.waiting();
  return statistics;
}

}  // namespace

Result<std::unique_ptr<Pipeline>> Pipeline::make(Source& source, Store& store, Handler handler,
                                                 PipelineOptions options, Clock& clock) {
  check_traits(source);
  ONCE_TRY(verify(source.traits(), store.traits(), handler, options));
  auto pipeline = std::make_unique<ThreadedPipeline>(source, store, std::move(handler),
                                                     std::move(options), clock);
  ONCE_TRY(pipeline->open_claims());
  return pipeline;
}

}  // namespace once
