// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "model/sha256.h"
#include "runtime/claims_engine.h"

namespace once {
namespace {

Status settle(Ticket::Held& held, const ClaimChange& change) {
  if (held.settled)
    return fail(Remedy::stop, "config",
                fmt::format("the claim of \"{}\" was settled before", held.record.id));
  ONCE_TRY(held.engine.change(held, change));
  held.settled = true;
  held.engine.closed(held);
  return {};
}

Status settle(Ticket::Held& held, const Outcome& outcome) {
  return settle(held, held.engine.settlement(held, outcome));
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
  return settle(*held_, applied(std::string(result)));
}

Status Ticket::reject(std::string_view reason) {
  return settle(*held_, rejected(std::string(reason)));
}

Status Ticket::release(std::string_view reason) {
  return settle(*held_, retry(std::string(reason)));
}

Status Ticket::release_all(std::string_view reason) {
  held_->record.steps.clear();
  return release(reason);
}

Status Ticket::doubt(std::string_view reason) {
  return settle(*held_, ClaimChange{.id = id(),
                                    .fence = fence(),
                                    .to = ClaimState::in_doubt,
                                    .reason = reason,
                                    .steps = held_->record.steps});
}

}  // namespace once
