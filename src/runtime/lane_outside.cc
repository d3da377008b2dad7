// SPDX-License-Identifier: Apache-2.0
// What a lane does before its transaction when the effect is outside the store: claim, run, settle.
// The transaction then only moves the position. Dying in between, the claims tell what happened.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/failpoint.h"
#include "runtime/lane.h"
#include "runtime/spoil.h"

namespace once {
namespace {

// The claims of a batch are taken together only if a lost one may be repeated: the others would all
// be in doubt, or given up, although hardly one of them had begun.
bool can_claim_ahead(const Outside& outside) { return outside.after_loss == AfterLoss::retry; }

// A lease that ran out under us is no reason to stop: the claim tells next time.
Status tolerate(const Status& settled) {
  if (settled || settled.error().tag != "superseded") return settled;
  return fail(Remedy::retry, "superseded", settled.error().text);
}

// What an effect said, or that it threw: then nobody knows how far it came.
Result<Outcome> call(const Outside& outside, const Delivery& delivery, Ticket& ticket) {
  try {
    return outside.run(delivery, ticket);
  } catch (const SimulatedDeath&) {
    throw;
  } catch (const std::exception& exception) {
    return fail(Remedy::recheck, "threw", fmt::format("the effect threw: {}", exception.what()));
  } catch (...) {
    return fail(Remedy::recheck, "threw", "the effect threw something that is no std::exception");
  }
}

}  // namespace

// Effects that have happened and whose claims are settled together.
struct Lane::Finished {
  std::vector<Ticket> tickets;
  std::vector<Outcome> outcomes;
  std::vector<std::size_t> indexes;
};

ClaimRequest Lane::request_for(const Item& item) const {
  return {.id = item.id, .fingerprint = item.fingerprint, .born_ms = item.born_ms};
}

Status Lane::work_outside() {
  std::vector<std::size_t> open;
  std::vector<ClaimRequest> requests;
  for (std::size_t i = 0; i < selected_.size(); ++i) {
    const Item& item = *selected_[i];
    if (item.decided || item.outside) continue;
    open.push_back(i);
    requests.push_back(request_for(item));
  }
  if (open.empty()) return {};
  const bool ahead = can_claim_ahead(*parts_.handler.outside());
  std::vector<ClaimVerdict> verdicts;
  if (ahead) verdicts = parts_.claims->begin(parts_.options.scope, requests);
  Finished finished;
  Status done;
  for (std::size_t k = 0; k < open.size() && done; ++k) {
    done = run_claimed(
        open[k],
        ahead ? std::move(verdicts[k]) : parts_.claims->begin(parts_.options.scope, requests[k]),
        finished);
    if (!ahead) ONCE_TRY(settle_finished(finished));
  }
  ONCE_TRY(settle_finished(finished));
  ONCE_POINT(lane_after_settle);
  if (done && undone_)
    return fail(Remedy::retry, "in_progress", "a message waits for its effect to be run elsewhere");
  return done;
}

Status Lane::run_claimed(std::size_t index, ClaimVerdict verdict, Finished& finished) {
  Item& item = *selected_[index];
  if (auto* mine = std::get_if<Execute>(&verdict))
    return run_effect(index, std::move(mine->ticket), finished);
  if (const auto* before = std::get_if<Duplicate>(&verdict)) {
    item.outside = Verdict{Verdict::Kind::duplicate, before->outcome};
  } else if (std::holds_alternative<Mismatch>(verdict)) {
    item.outside = Verdict{Verdict::Kind::mismatch, {}};
  } else if (std::holds_alternative<TooOld>(verdict)) {
    item.outside = Verdict{Verdict::Kind::too_old, {}};
  } else if (std::holds_alternative<InDoubt>(verdict)) {
    return spoil(index, retry(fmt::format("the claim of \"{}\" is in doubt, and the other side "
                                          "does not say whether its effect happened",
                                          item.id)));
  } else if (const auto* away = std::get_if<Unavailable>(&verdict)) {
    if (away->error.remedy == Remedy::park) return spoil(index, parked(away->error.text));
    return tolerate(fail(away->error));
  } else if (!parts_.ordered) {
    wait_for_other(item, verdict);
  } else {
    // Another owner runs it. Its message is not acknowledged before the outcome is known (H21).
    return fail(Remedy::retry, "in_progress",
                fmt::format("\"{}\" is being run by another owner", item.id));
  }
  return {};
}

// The others go on without it; it is asked for again when that is worth it.
void Lane::wait_for_other(Item& item, const ClaimVerdict& verdict) {
  const RetryPolicy& policy = parts_.options.retry;
  const auto* in_progress = std::get_if<InProgress>(&verdict);
  const std::int64_t wanted_ms = in_progress != nullptr ? in_progress->retry_after_ms : 0;
  wait(item, std::clamp<std::int64_t>(wanted_ms, std::max<std::int64_t>(policy.backoff_ms_min, 1),
                                      std::max<std::int64_t>(policy.backoff_ms_max, 1)));
  undone_ = true;
}

Status Lane::run_effect(std::size_t index, Ticket ticket, Finished& finished) {
  Item& item = *selected_[index];
  item.delivery.attempt = ticket.attempt();
  ONCE_POINT(lane_after_claim);
  Result<Outcome> outcome = call(*parts_.handler.outside(), item.delivery, ticket);
  if (outcome)
    outcome = redacted(std::move(*outcome));
  else
    outcome.error().text = redacted(outcome.error().text);
  ONCE_POINT(lane_after_effect);
  if (!outcome) return effect_failed(index, std::move(ticket), outcome.error());
  switch (outcome->kind) {
    case Outcome::Kind::applied:
    case Outcome::Kind::rejected:
      finished.tickets.push_back(std::move(ticket));
      finished.outcomes.push_back(std::move(*outcome));
      finished.indexes.push_back(index);
      return {};
    case Outcome::Kind::retry: return give_up_effect(index, ticket, *outcome);
    // Claims do not wait in the store: the message is retried where it is.
    case Outcome::Kind::later:
      return give_up_effect(index, ticket, retry(outcome->detail, outcome->after_ms));
    case Outcome::Kind::no_effect:
    case Outcome::Kind::parked: break;
  }
  ONCE_TRY(tolerate(ticket.release(outcome->detail)));
  item.outside = Verdict{Verdict::Kind::fresh, std::move(*outcome)};
  return {};
}

// This try is over. Whether there is another is the operation's choice.
Status Lane::give_up_effect(std::size_t index, Ticket& ticket, const Outcome& outcome) {
  switch (parts_.handler.outside()->on_failure) {
    case OnFailure::keep_steps: ONCE_TRY(tolerate(ticket.release(outcome.detail))); break;
    case OnFailure::release: ONCE_TRY(tolerate(ticket.release_all(outcome.detail))); break;
    case OnFailure::bind:
      ONCE_TRY(tolerate(ticket.reject(outcome.detail)));
      selected_[index]->outside = Verdict{Verdict::Kind::fresh, rejected(outcome.detail)};
      return {};
  }
  return spoil(index, outcome);
}

Status Lane::effect_failed(std::size_t index, Ticket ticket, const Error& error) {
  switch (error.remedy) {
    case Remedy::retry: return give_up_effect(index, ticket, retry(error.text));
    case Remedy::park: return give_up_effect(index, ticket, parked(error.text));
    case Remedy::recheck:
      // It may have happened: what that means for the claim is in its AfterLoss, and the ticket
      // says so when it goes.
      return spoil(index, retry(error.text));
    case Remedy::stop: break;
  }
  return fail(error);
}

Status Lane::settle_finished(Finished& finished) {
  if (finished.tickets.empty()) return {};
  const auto ours = ONCE_TRY(parts_.claims->settle(finished.tickets, finished.outcomes));
  for (std::size_t k = 0; k < finished.indexes.size(); ++k) {
    // Superseded: another owner runs it now, and it is the claim that tells us next time.
    if (!ours[k]) continue;
    selected_[finished.indexes[k]]->outside =
        Verdict{Verdict::Kind::fresh, std::move(finished.outcomes[k])};
  }
  const bool superseded = std::find(ours.begin(), ours.end(), false) != ours.end();
  finished = {};
  if (superseded)
    return fail(Remedy::retry, "superseded", "a lease ran out before its effect was settled");
  return {};
}

}  // namespace once
