// SPDX-License-Identifier: Apache-2.0
// The life of a pipeline: it begins, polls, waits for what is away, and ends.
#include <fmt/format.h>
#include <once/pipeline.h>

#include <chrono>
#include <exception>
#include <utility>

#include "base/exception.h"
#include "model/gone.h"
#include "runtime/batch_check.h"
#include "runtime/poller.h"
#include "runtime/spread.h"

namespace once {

Status Poller::open_claims() {
  if (!handler_.outside()) return {};
  ClaimsOptions options;
  options.lease_ms = handler_.outside()->lease_ms;
  options.after_loss = handler_.outside()->after_loss;
  options.resolver = handler_.outside()->ask;
  claims_ = ONCE_TRY(Claims::make(store_, std::move(options), clock_));
  return {};
}

void Poller::start_lanes() {
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

Status Poller::run() {
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
bool Poller::is_final(const Error& error) const {
  return !is_transient(error.remedy) || (error.tag == "exhausted" && !has_begun_);
}

// What a run has used up and did not get back in all this time, a new process may get: its memory
// is its own. Whoever starts it again decides how often.
Status Poller::check_exhausted() const {
  constexpr std::int64_t exhausted_ms_max = 600'000;
  auto exhausted = events_.exhausted_for(exhausted_ms_max);
  if (!exhausted) return {};
  exhausted->text += fmt::format("; it was waited for {} s", exhausted_ms_max / 1000);
  return fail(std::move(*exhausted));
}

Status Poller::loop() {
  while (!stopping_) {
    ONCE_TRY(check_exhausted());
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
    auto batch = poll();
    if (batch) {
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

Result<Batch> Poller::poll() {
  const bool full = !has_room();
  if (full) wait_for_lanes();
  const std::size_t count_max = full            ? 0
                                : keeps_order() ? options_.batch_count_max
                                                : poll_count_max(traits_, options_);
  auto batch = source_.poll(count_max, options_.batch_wait_ms);
  if (batch) check_batch(*batch, traits_.ordered, count_max);
  return batch;
}

Status Poller::handle(Batch batch) {
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

// Of a message that waits in the store nobody knows yet what becomes of it.
Status Poller::finish_at_end() {
  ONCE_TRY(collect_news());
  if (counters_.deferred > 0) return {};
  if (auto too_many = parked_share_.exceeded_at_end(options_.scope))
    return fail(std::move(*too_many));
  return {};
}

// What the lanes are doing is finished, what they have not begun is given back.
Status Poller::shut_down(Status outcome) {
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

void Poller::wake() {
  {
    const std::lock_guard lock(news_mutex_);
    woken_ = true;
  }
  news_.notify_all();
}

void Poller::rest(std::int64_t wait_ms) {
  std::unique_lock lock(news_mutex_);
  news_.wait_for(lock, std::chrono::milliseconds(wait_ms), [this] { return stopping_.load(); });
}

Statistics Poller::statistics() const {
  Statistics statistics = counters_.snapshot();
  statistics.lag = lag_.messages();
  statistics.lag_partitions = lag_.partitions();
  statistics.partitions = partition_count_;
  statistics.waiting = events_.waiting();
  return statistics;
}

Result<std::unique_ptr<Pipeline>> Pipeline::make(Source& source, Store& store, Handler handler,
                                                 PipelineOptions options, Clock& clock) {
  check_traits(source);
  ONCE_TRY(verify(source.traits(), store.traits(), handler, options));
  auto pipeline =
      std::make_unique<Poller>(source, store, std::move(handler), std::move(options), clock);
  ONCE_TRY(pipeline->open_claims());
  return pipeline;
}

}  // namespace once
