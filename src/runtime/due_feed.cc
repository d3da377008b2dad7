// SPDX-License-Identifier: Apache-2.0
#include "runtime/due_feed.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/failpoint.h"
#include "model/message_view.h"

namespace once {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::int64_t look_ms_max = 500;  // another process may have put something off
constexpr std::size_t batch_count_max = 1000;

// What a batch of them refers to.
struct Memory {
  std::vector<DeferredRecord> records;
  std::vector<std::vector<HeaderView>> headers;
};

}  // namespace

Batch due_batch(std::vector<DeferredRecord> records) {
  // Messages of one key in the order in which they came.
  std::sort(records.begin(), records.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  auto memory = std::make_shared<Memory>();
  memory->records = std::move(records);
  Batch batch;
  batch.deliveries.reserve(memory->records.size());
  for (const DeferredRecord& record : memory->records)
    memory->headers.push_back(header_views(record.message));
  for (std::size_t i = 0; i < memory->records.size(); ++i) {
    const DeferredRecord& record = memory->records[i];
    Delivery& delivery = batch.deliveries.emplace_back();
    delivery.partition = record.partition;
    delivery.offset = record.offset;
    delivery.id = record.message.id;
    delivery.key = view_of(record.message.key);
    delivery.body = view_of(record.message.body);
    delivery.headers = memory->headers[i];
    delivery.timestamp_ms = record.message.timestamp_ms;
    delivery.deferral = {record.number, record.attempts, record.in_order};
  }
  batch.memory = std::move(memory);
  return batch;
}

DueFeed::DueFeed(Store& store, Clock& clock, const PipelineOptions& options,
                 std::atomic<bool>& may_wait)
    : deferrals_(store.deferrals()), clock_(clock), options_(options), may_wait_(may_wait) {
  if (store.claims() != nullptr)
    role_.emplace(*store.claims(),
                  RoleOptions{.scope = std::string(later_scope), .id = options.scope}, clock);
}

Result<bool> DueFeed::is_ours() {
  if (!role_) return true;
  return role_->hold();
}

// As Lane::check_can_wait says; what waits in other scopes is not ours.
bool DueFeed::can_wait() const {
  return deferrals_ != nullptr && options_.id && options_.semantics == Semantics::effectively_once;
}

Status DueFeed::look() {
  if (can_wait() && ONCE_TRY(deferrals_->due(options_.scope, 1)).wait_ms >= 0) may_wait_ = true;
  return {};
}

Result<std::optional<Batch>> DueFeed::poll(bool now) {
  if (!can_wait()) return std::nullopt;
  const std::int64_t now_ns = clock_.ticks_ns();
  if (!now && now_ns < look_at_ns_) return std::nullopt;
  look_at_ns_ = now_ns + look_ms_max * ns_per_ms;
  DueMessages due = ONCE_TRY(
      deferrals_->due(options_.scope, std::min(options_.batch_count_max, batch_count_max)));
  if (due.wait_ms < 0) return std::nullopt;
  may_wait_ = true;
  if (due.messages.empty())
    look_at_ns_ = now_ns + std::min(due.wait_ms + 1, look_ms_max) * ns_per_ms;
  if (due.messages.empty() || !ONCE_TRY(is_ours())) return std::nullopt;
  look_at_ns_ = now_ns;  // there may be more than one batch
  ONCE_POINT(feed_after_poll);
  return due_batch(std::move(due.messages));
}

}  // namespace once
