// SPDX-License-Identifier: Apache-2.0
#include "model/claim.h"

#include <fmt/format.h>
#include <once/identity.h>

#include <algorithm>
#include <utility>

#include "base/mutant.h"
#include "model/fingerprint.h"
#include "model/ledger.h"

namespace once {
namespace {

constexpr std::size_t owner_bytes_max = 255;
constexpr std::int64_t lease_ms_max = 24 * 3600 * 1000LL;

bool is_settled(ClaimState state) {
  return state == ClaimState::done || state == ClaimState::rejected;
}

// A fence is only good for one owner: whoever holds the claim has the newest.
bool is_held(const ClaimRecord& row) { return row.lease_until_ms != 0; }

void let_go(ClaimRecord& row) {
  row.lease_until_ms = 0;
  row.owner.clear();
}

void grant(ClaimRecord& row, const ClaimTerms& terms, std::int64_t now_ms) {
  row.fence = next_fence(row.fence, now_ms);
  row.owner = terms.owner;
  row.changed_ms = now_ms;
  row.lease_until_ms = now_ms + terms.lease_ms;
  if (row.state == ClaimState::in_doubt) return;  // for its resolver: the attempt stays as it was
  ++row.attempts;
  row.state = ClaimState::running;
  row.after_loss = terms.after_loss;
  row.reason.clear();
}

ClaimRecord new_claim(const ClaimRequest& request, std::int64_t now_ms) {
  ClaimRecord row;
  row.id = request.id;
  row.fingerprint = request.fingerprint;
  row.born_ms = request.born_ms == 0 ? now_ms : ledger_time(request.born_ms);
  return row;
}

Status refuse(std::string text) { return fail(Remedy::stop, "config", std::move(text)); }

}  // namespace

Status check_terms(const ClaimTerms& terms) {
  if (terms.owner.empty() || terms.owner.size() > owner_bytes_max)
    return refuse(fmt::format("the owner of a claim has a name of 1 to {} bytes", owner_bytes_max));
  if (terms.lease_ms < 1 || terms.lease_ms > lease_ms_max)
    return refuse(
        fmt::format("lease_ms must be between 1 and {}, not {}", lease_ms_max, terms.lease_ms));
  return {};
}

Status check_requests(std::span<const ClaimRequest> requests) {
  for (const ClaimRequest& request : requests) ONCE_TRY(check_id(request.id));
  return {};
}

Status check_changes(std::span<const ClaimChange> changes) {
  for (const ClaimChange& change : changes) {
    ONCE_TRY(check_id(change.id));
    std::size_t bytes = 0;
    for (const StepRecord& step : change.steps) bytes += step.name.size() + step.result.size() + 16;
    if (bytes > claim_steps_bytes_max)
      return fail(Remedy::stop, "limit",
                  fmt::format("the steps of \"{}\" have {} bytes of names and results, at most {} "
                              "are kept; give the steps smaller results",
                              change.id, bytes, claim_steps_bytes_max));
  }
  return {};
}

Status check_force(const ClaimForce& force) {
  ONCE_TRY(check_id(force.id));
  if (force.to == ClaimState::running || force.to == ClaimState::in_doubt)
    return refuse("a claim can be forced to done, rejected or retryable");
  if (force.reason.empty()) return refuse("to force a claim, a reason is needed");
  return {};
}

ClaimState state_after(AfterLoss after_loss) {
  switch (after_loss) {
    case AfterLoss::retry: return ClaimState::retryable;
    case AfterLoss::doubt: return ClaimState::in_doubt;
    case AfterLoss::give_up: return ClaimState::rejected;
  }
  return ClaimState::in_doubt;
}

ClaimRecord as_of(ClaimRecord row, std::int64_t now_ms) {
  if (!is_held(row) || row.lease_until_ms > now_ms) return row;
  const std::string owner = std::exchange(row.owner, {});
  let_go(row);
  if (row.state != ClaimState::running) return row;  // its resolver was lost: still in doubt
  row.state = state_after(row.after_loss);
  if (mutant(Mutant::lost_owner_counts_as_done)) row.state = ClaimState::done;
  row.reason = fmt::format("its owner {} was lost", owner);
  return row;
}

ClaimAnswer answer_claim(std::optional<ClaimRecord>& row, const ClaimRequest& request,
                         const ClaimTerms& terms, std::int64_t now_ms, std::int64_t horizon_ms) {
  ClaimAnswer answer;
  answer.now_ms = now_ms;
  answer.horizon_ms = horizon_ms;
  const auto say = [&](ClaimAnswer::Kind kind) {
    answer.kind = kind;
    if (row) answer.record = *row;
    return answer;
  };
  using Kind = ClaimAnswer::Kind;
  if (!row) {
    const bool forgotten = request.born_ms != 0 && ledger_time(request.born_ms) < horizon_ms;
    if (forgotten && !mutant(Mutant::forgotten_claim_is_new)) return say(Kind::too_old);
    row = new_claim(request, now_ms);
    if (request.generation > row->generation) row->generation = request.generation;
    grant(*row, terms, now_ms);
    return say(Kind::granted);
  }
  row = as_of(std::move(*row), now_ms);
  if (contradicts(row->fingerprint, request.fingerprint)) return say(Kind::mismatch);
  if (request.generation != 0 && request.generation < row->generation) return say(Kind::stale);
  if (is_settled(row->state)) return say(Kind::settled);
  if (is_held(*row) && !mutant(Mutant::claim_without_lease)) return say(Kind::busy);
  const bool doubtful = row->state == ClaimState::in_doubt;
  grant(*row, terms, now_ms);
  return say(doubtful ? Kind::doubtful : Kind::granted);
}

bool renew_claim(ClaimRecord& row, std::uint64_t fence, std::int64_t lease_ms,
                 std::int64_t now_ms) {
  if (row.fence != fence || !is_held(row)) return false;
  row.lease_until_ms = std::max(row.lease_until_ms, now_ms + lease_ms);
  return true;
}

bool change_claim(ClaimRecord& row, const ClaimChange& change, std::int64_t now_ms) {
  const bool ours = row.fence == change.fence && is_held(row);
  if (!ours && !mutant(Mutant::stale_owner_settles)) return false;
  row.changed_ms = now_ms;
  row.steps.assign(change.steps.begin(), change.steps.end());
  row.state = change.to;
  row.reason = change.reason;
  row.result.reset();
  if (change.to == ClaimState::done && change.result) row.result = std::string(*change.result);
  if (change.to != ClaimState::running) let_go(row);
  return true;
}

void force_claim(ClaimRecord& row, const ClaimForce& force, std::int64_t now_ms) {
  row.fence = next_fence(row.fence, now_ms);  // whoever runs it can no longer settle it
  let_go(row);
  row.changed_ms = now_ms;
  row.state = force.to;
  row.reason = force.reason;
  row.result.reset();
  if (force.to == ClaimState::done && force.result) row.result = std::string(*force.result);
  if (force.to != ClaimState::retryable) return;
  ++row.generation;
  row.attempts = 0;
  row.steps.clear();
}

std::string_view force_action(ClaimState to) {
  switch (to) {
    case ClaimState::done: return "claim done";
    case ClaimState::rejected: return "claim rejected";
    default: return "claim reopened";
  }
}

Error missing_claim(std::string_view scope, std::string_view id) {
  return {Remedy::stop, "not_known", fmt::format("scope \"{}\" has no claim \"{}\"", scope, id),
          std::nullopt};
}

bool can_be_forgotten(const ClaimRecord& row, std::int64_t now_ms, std::int64_t horizon_ms) {
  return row.born_ms < horizon_ms && is_settled(as_of(row, now_ms).state);
}

std::string encode_steps(std::span<const StepRecord> steps) {
  std::vector<std::string_view> parts;
  parts.reserve(2 * steps.size());
  for (const StepRecord& step : steps) {
    parts.push_back(step.name);
    parts.push_back(step.result);
  }
  return parts.empty() ? std::string() : encode_tuple(parts);
}

Result<std::vector<StepRecord>> decode_steps(std::string_view bytes) {
  std::vector<StepRecord> steps;
  if (bytes.empty()) return steps;
  auto parts = ONCE_TRY(decode_tuple(bytes));
  if (parts.size() % 2 != 0)
    return fail(Remedy::stop, "corrupt", "a step of a claim has no result");
  for (std::size_t i = 0; i < parts.size(); i += 2)
    steps.push_back({std::move(parts[i]), std::move(parts[i + 1])});
  return steps;
}

}  // namespace once
