// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/mutant.h"
#include "model/sha256.h"
#include "runtime/claims_engine.h"

namespace once {
namespace {

Status settle(Ticket::Held& held, ClaimState to, std::optional<std::string_view> result,
              std::string_view reason, std::span<const StepRecord> steps) {
  if (held.settled)
    return fail(Remedy::stop, "config",
                fmt::format("the claim of \"{}\" was settled before", held.record.id));
  ONCE_TRY(
      held.engine.change(held, {held.record.id, held.record.fence, to, result, reason, steps}));
  held.settled = true;
  held.engine.closed(held);
  return {};
}

}  // namespace

Ticket::Ticket(std::unique_ptr<Held> held) : held_(std::move(held)) {}
Ticket::Ticket(Ticket&&) noexcept = default;
Ticket& Ticket::operator=(Ticket&& other) noexcept {
  std::swap(held_, other.held_);
  return *this;
}

Ticket::~Ticket() {
  if (held_ == nullptr || held_->settled) return;
  held_->engine.abandon(*held_);
  held_->engine.closed(*held_);
}

const ClaimRecord& Ticket::record() const {
  ONCE_ASSERT(held_ != nullptr);
  return held_->record;
}

bool Ticket::lost() const { return held_->lost; }

std::string Ticket::downstream_id(std::string_view step) const {
  Sha256 hash("once.downstream.1");
  hash.field(held_->scope);
  hash.field(held_->record.id);
  hash.field(fmt::format("{}", held_->record.generation));
  hash.field(step);
  return to_hex(hash.digest128());
}

Result<std::string> Ticket::step(std::string_view name, const Work& work) {
  std::vector<StepRecord>& steps = held_->record.steps;
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [&](const StepRecord& step) { return step.name == name; });
  if (found != steps.end()) return found->result;
  if (held_->record.state != ClaimState::running || held_->settled)
    return fail(Remedy::stop, "config",
                fmt::format("step \"{}\" of \"{}\": the claim is not running", name, id()));
  std::string result = ONCE_TRY(work(downstream_id(name)));
  steps.push_back({std::string(name), result});
  const ClaimChange kept{id(), fence(), ClaimState::running, {}, {}, steps};
  if (const Status written = held_->engine.change(*held_, kept); !written) {
    steps.pop_back();
    return fail(written.error());
  }
  return result;
}

Status Ticket::proceed() {
  if (held_->record.state != ClaimState::in_doubt || held_->settled)
    return fail(Remedy::stop, "config", fmt::format("the claim of \"{}\" is not in doubt", id()));
  ONCE_TRY(held_->engine.change(*held_,
                                {id(), fence(), ClaimState::running, {}, {}, held_->record.steps}));
  held_->record.state = ClaimState::running;
  return {};
}

Status Ticket::done(std::string_view result) {
  std::optional<std::string_view> kept = result;
  if (result.size() > held_->engine.result_bytes_max()) kept.reset();
  return settle(*held_, ClaimState::done, kept, {}, {});
}

Status Ticket::reject(std::string_view reason) {
  return settle(*held_, ClaimState::rejected, {}, reason, held_->record.steps);
}

Status Ticket::release(std::string_view reason) {
  if (mutant(Mutant::failed_claim_is_settled)) return done({});
  return settle(*held_, ClaimState::retryable, {}, reason, held_->record.steps);
}

Status Ticket::release_all(std::string_view reason) {
  return settle(*held_, ClaimState::retryable, {}, reason, {});
}

Status Ticket::doubt(std::string_view reason) {
  return settle(*held_, ClaimState::in_doubt, {}, reason, held_->record.steps);
}

}  // namespace once
