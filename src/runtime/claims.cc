// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/identity.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/mutant.h"
#include "model/claim.h"
#include "model/fingerprint.h"
#include "model/ledger.h"
#include "runtime/claims_engine.h"

namespace once {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::int64_t poll_ms_min = 5;
constexpr std::int64_t poll_ms_max = 200;
constexpr std::int64_t retry_after_ms_max = 1'000;
constexpr std::size_t resolve_count_max = 256;

// Two programs of one name must not take each other's claims for their own.
std::string unique_owner(const std::string& name, Clock& clock) {
  std::array<char, 128> host{};
  if (!name.empty())
    host[0] = 0;
  else if (::gethostname(host.data(), host.size() - 1) != 0)
    host[0] = '?';
  const auto id = make_uuid7(clock)->next();
  return fmt::format("{}{}/{}/{}", name.substr(0, 128), host.data(), ::getpid(),
                     id ? id->substr(24) : "?");
}

// Of equal requests in a span the first is granted, the others are busy.
bool first_of_its_id(std::span<const ClaimRequest> requests, std::size_t index) {
  for (std::size_t i = 0; i < index; ++i)
    if (requests[i].id == requests[index].id) return false;
  return true;
}

Duplicate duplicate_of(const ClaimRecord& record) {
  if (record.state == ClaimState::rejected) return {rejected(record.reason), true};
  return {applied(record.result.value_or("")), record.result.has_value()};
}

Error superseded(std::string_view id, std::uint64_t fence) {
  return {Remedy::stop, "superseded",
          fmt::format("the claim of \"{}\" has another owner: fence {} may not write", id, fence),
          std::nullopt};
}

Resolution ask_resolver(const Resolver& resolver, const Ticket& ticket) {
  try {
    return resolver(ticket);
  } catch (...) {
    return {};  // unknown, as before
  }
}

}  // namespace

Result<std::unique_ptr<Claims>> Claims::make(Store& store, ClaimsOptions options, Clock& clock) {
  if (store.claims() == nullptr)
    return fail(Remedy::stop, "config",
                fmt::format("the store {} keeps no claims; use another store for effects outside",
                            store.traits().name));
  if (options.lease_ms < 10)
    return fail(Remedy::stop, "config",
                fmt::format("lease_ms must be at least 10, not {}", options.lease_ms));
  return std::make_unique<ClaimsEngine>(*store.claims(), std::move(options), clock);
}

ClaimsEngine::ClaimsEngine(ClaimStore& store, ClaimsOptions options, Clock& clock)
    : store_(store),
      options_(std::move(options)),
      owner_(unique_owner(options_.owner, clock)),
      clock_(clock) {
  if (options_.renew_in_background)
    renewer_ = std::jthread([this](const std::stop_token& token) { keep_leases(token); });
}

ClaimsEngine::~ClaimsEngine() = default;

void ClaimsEngine::keep_leases(const std::stop_token& token) {
  const auto period = std::chrono::milliseconds(std::max<std::int64_t>(1, options_.lease_ms / 3));
  std::unique_lock lock(mutex_);
  while (!token.stop_requested()) {
    changed_.wait_for(lock, token, period, [] { return false; });
    if (token.stop_requested()) return;
    lock.unlock();
    (void)renew();  // a store that is away now may be back before the lease runs out
    lock.lock();
  }
}

Status ClaimsEngine::renew() {
  // Ids are copied: a ticket may be settled and gone while the store is asked.
  std::map<std::string, std::vector<std::pair<std::string, std::uint64_t>>> by_scope;
  {
    const std::lock_guard lock(mutex_);
    for (const Ticket::Held* held : held_)
      by_scope[held->scope].emplace_back(held->record.id, held->record.fence);
  }
  for (const auto& [scope, ids] : by_scope) {
    std::vector<HeldClaim> claims;
    for (const auto& [id, fence] : ids) claims.push_back({id, fence});
    const auto ours = ONCE_TRY(store_.renew(scope, options_.lease_ms, claims));
    const std::lock_guard lock(mutex_);
    for (Ticket::Held* held : held_)
      for (std::size_t i = 0; i < claims.size(); ++i)
        if (!ours[i] && held->scope == scope && held->record.id == claims[i].id &&
            held->record.fence == claims[i].fence)
          held->lost = true;
  }
  return {};
}

// --- asking

ClaimVerdict ClaimsEngine::begin(std::string_view scope, const ClaimRequest& request) {
  if (Status checked = check_scope(scope); !checked) return Unavailable{checked.error()};
  const std::int64_t until_ns = clock_.ticks_ns() + options_.wait_ms_max * ns_per_ms;
  std::int64_t poll_ms = poll_ms_min;
  for (;;) {
    if (auto known = attach(scope, request, until_ns)) return std::move(*known);
    ClaimVerdict verdict = ask(scope, request);
    const bool busy = std::holds_alternative<InProgress>(verdict);
    if (!busy || options_.when_busy == WhenBusy::tell) return verdict;
    if (options_.when_busy == WhenBusy::refuse)
      return Unavailable{{Remedy::retry, "busy",
                          fmt::format("\"{}\" is being run by another owner", request.id),
                          std::nullopt}};
    if (clock_.ticks_ns() >= until_ns) return verdict;
    std::this_thread::sleep_for(std::chrono::milliseconds(poll_ms));
    poll_ms = std::min(2 * poll_ms, poll_ms_max);
  }
}

// The store is not asked about an effect that runs in this process.
std::optional<ClaimVerdict> ClaimsEngine::attach(std::string_view scope,
                                                 const ClaimRequest& request,
                                                 std::int64_t until_ns) {
  const auto other = running(scope, request.id);
  if (other == nullptr || options_.when_busy != WhenBusy::wait) return std::nullopt;
  std::unique_lock lock(mutex_);
  if (contradicts(other->record.fingerprint, request.fingerprint))
    return Mismatch{other->record.fingerprint, request.fingerprint};
  const auto left = std::chrono::nanoseconds(until_ns - clock_.ticks_ns());
  if (!changed_.wait_for(lock, left, [&] { return other->finished; }))
    return InProgress{retry_after_ms_max};
  const ClaimState state = other->record.state;
  const bool stale = request.generation != 0 && request.generation < other->record.generation;
  if (stale || (state != ClaimState::done && state != ClaimState::rejected)) return std::nullopt;
  return duplicate_of(other->record);
}

std::shared_ptr<ClaimsEngine::Running> ClaimsEngine::running(std::string_view scope,
                                                             std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(Key(scope, id));
  return found == running_.end() ? nullptr : found->second;
}

ClaimVerdict ClaimsEngine::ask(std::string_view scope, const ClaimRequest& request) {
  auto answers = claim(scope, std::span(&request, 1));
  if (!answers) return Unavailable{answers.error()};
  return verdict_of(scope, request, std::move(answers->front()));
}

std::vector<ClaimVerdict> ClaimsEngine::begin(std::string_view scope,
                                              std::span<const ClaimRequest> requests) {
  std::vector<ClaimVerdict> verdicts;
  verdicts.reserve(requests.size());
  auto answers = claim(scope, requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (answers)
      verdicts.push_back(verdict_of(scope, requests[i], std::move((*answers)[i])));
    else
      verdicts.emplace_back(Unavailable{answers.error()});
  }
  return verdicts;
}

Result<std::vector<ClaimAnswer>> ClaimsEngine::claim(std::string_view scope,
                                                     std::span<const ClaimRequest> requests) {
  // A name for each call: a claim of an earlier one, whose ticket died when the store was away,
  // must not be taken for this one's.
  const std::string owner = fmt::format("{}#{}", owner_, ++calls_);
  const ClaimTerms terms{owner, options_.lease_ms, options_.after_loss};
  auto answers = store_.claim(scope, terms, requests);
  if (!answers && answers.error().remedy == Remedy::recheck)
    return find_own(scope, requests, owner, answers.error());
  return answers;
}

// Nobody knows whether the claims were written. Those that were carry the name of the call; if none
// does, nothing happened.
Result<std::vector<ClaimAnswer>> ClaimsEngine::find_own(std::string_view scope,
                                                        std::span<const ClaimRequest> requests,
                                                        const std::string& owner, Error error) {
  std::vector<ClaimAnswer> answers(requests.size());
  bool any = false;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    answers[i].kind = ClaimAnswer::Kind::busy;
    auto found = ONCE_TRY(store_.claims(scope, std::nullopt, requests[i].id, 1));
    if (found.empty() || found[0].id != requests[i].id) continue;
    const bool ours = found[0].owner == owner && first_of_its_id(requests, i);
    if (ours)
      answers[i].kind = found[0].state == ClaimState::running ? ClaimAnswer::Kind::granted
                                                              : ClaimAnswer::Kind::doubtful;
    answers[i].record = std::move(found[0]);
    any = any || ours;
  }
  if (any) return answers;
  error.remedy = Remedy::retry;
  return fail(std::move(error));
}

ClaimVerdict ClaimsEngine::verdict_of(std::string_view scope, const ClaimRequest& request,
                                      ClaimAnswer answer) {
  switch (answer.kind) {
    case ClaimAnswer::Kind::granted: return Execute{make_ticket(scope, std::move(answer.record))};
    case ClaimAnswer::Kind::doubtful:
      return resolve_doubt(make_ticket(scope, std::move(answer.record)));
    case ClaimAnswer::Kind::settled: return duplicate_of(answer.record);
    case ClaimAnswer::Kind::busy: return busy_verdict(answer);
    case ClaimAnswer::Kind::mismatch:
      return Mismatch{answer.record.fingerprint, request.fingerprint};
    case ClaimAnswer::Kind::too_old: return TooOld{answer.horizon_ms};
    case ClaimAnswer::Kind::stale: return Stale{answer.record.generation};
  }
  return Unavailable{};
}

ClaimVerdict ClaimsEngine::busy_verdict(const ClaimAnswer& answer) const {
  const std::int64_t left_ms = answer.record.lease_until_ms - answer.now_ms;
  return InProgress{std::clamp<std::int64_t>(left_ms, 1, retry_after_ms_max)};
}

ClaimVerdict ClaimsEngine::resolve_doubt(Ticket ticket) {
  if (!options_.resolver) return InDoubt{std::move(ticket)};
  const Resolution known = ask_resolver(options_.resolver, ticket);
  Status settled;
  switch (known.kind) {
    case Resolution::Kind::unknown: return InDoubt{std::move(ticket)};
    case Resolution::Kind::did_not_happen: settled = ticket.proceed(); break;
    case Resolution::Kind::happened: settled = ticket.done(known.detail); break;
    case Resolution::Kind::refused: settled = ticket.reject(known.detail); break;
  }
  if (!settled) return Unavailable{settled.error()};
  if (known.kind == Resolution::Kind::did_not_happen) return Execute{std::move(ticket)};
  return Duplicate{
      known.kind == Resolution::Kind::happened ? applied(known.detail) : rejected(known.detail),
      true};
}

Result<std::size_t> ClaimsEngine::resolve(std::string_view scope) {
  std::size_t left = 0;
  std::string from_id;
  for (;;) {
    const auto doubtful =
        ONCE_TRY(store_.claims(scope, ClaimState::in_doubt, from_id, resolve_count_max));
    for (const ClaimRecord& record : doubtful) {
      ClaimVerdict verdict = ask(scope, {.id = record.id});
      if (const auto* away = std::get_if<Unavailable>(&verdict)) return fail(away->error);
      if (std::holds_alternative<InDoubt>(verdict)) ++left;
      // It is free again, and whoever brings the message runs it.
      if (auto* free = std::get_if<Execute>(&verdict))
        ONCE_TRY(free->ticket.release("it did not happen"));
    }
    if (doubtful.size() < resolve_count_max) return left;
    from_id = doubtful.back().id + '\0';
  }
}

// --- tickets

Ticket ClaimsEngine::make_ticket(std::string_view scope, ClaimRecord record) {
  auto held =
      std::unique_ptr<Ticket::Held>(new Ticket::Held{*this, std::string(scope), std::move(record)});
  const std::lock_guard lock(mutex_);
  auto shared = std::make_shared<Running>();
  shared->record = held->record;
  running_[Key(held->scope, held->record.id)] = std::move(shared);
  held_.insert(held.get());
  return Ticket(std::move(held));
}

Status ClaimsEngine::change(Ticket::Held& held, const ClaimChange& change) {
  Ticket::Held* const one = &held;
  const auto ours = ONCE_TRY(write(std::span(&one, 1), std::span(&change, 1)));
  if (!ours.front()) return fail(superseded(held.record.id, held.record.fence));
  return {};
}

// All of one scope, in one round trip.
Result<std::vector<bool>> ClaimsEngine::write(std::span<Ticket::Held* const> tickets,
                                              std::span<const ClaimChange> changes) {
  const auto written = store_.change(tickets.front()->scope, changes);
  if (!written && written.error().remedy != Remedy::recheck) return fail(written.error());
  std::vector<bool> ours(tickets.size());
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    ours[i] = written && (*written)[i];
    // Else it is another's, or a try of ours was written and its answer was lost.
    if (!ours[i]) ours[i] = ONCE_TRY(was_written(*tickets[i], changes[i].to, written.has_value()));
    if (!ours[i])
      tickets[i]->lost = true;
    else if (changes[i].to != ClaimState::running)
      finish(*tickets[i], changes[i]);
  }
  return ours;
}

// False: the claim is not ours any more. Without an answer, a change that never arrived is an error
// with the remedy `retry`: the next try has an answer.
Result<bool> ClaimsEngine::was_written(const Ticket::Held& held, ClaimState to, bool answered) {
  const auto found = ONCE_TRY(store_.claims(held.scope, std::nullopt, held.record.id, 1));
  if (found.empty() || found[0].id != held.record.id || found[0].fence != held.record.fence)
    return false;
  if (found[0].state == to) return true;
  if (answered) return false;
  return fail(
      Remedy::retry, "lost",
      fmt::format("the change of the claim of \"{}\" did not arrive; try again", held.record.id));
}

void ClaimsEngine::abandon(Ticket::Held& held) {
  if (held.lost) return;
  const ClaimState to = held.record.state == ClaimState::in_doubt
                            ? ClaimState::in_doubt
                            : state_after(held.record.after_loss);
  const ClaimChange lost{held.record.id,   held.record.fence, to, {}, "its ticket was not settled",
                         held.record.steps};
  (void)change(held, lost);  // else its lease runs out, and the store says the same
}

// Those who wait for it get what it came to.
void ClaimsEngine::finish(Ticket::Held& held, const ClaimChange& change) {
  held.record.state = change.to;
  held.record.reason = change.reason;
  if (change.result) held.record.result = std::string(*change.result);
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(Key(held.scope, held.record.id));
  if (found != running_.end() && found->second->record.fence == held.record.fence)
    found->second->record = held.record;
}

void ClaimsEngine::closed(Ticket::Held& held) {
  const std::lock_guard lock(mutex_);
  held_.erase(&held);
  const auto found = running_.find(Key(held.scope, held.record.id));
  if (found == running_.end() || found->second->record.fence != held.record.fence) return;
  found->second->finished = true;
  running_.erase(found);
  changed_.notify_all();
}

Result<std::vector<bool>> ClaimsEngine::settle(std::span<Ticket> tickets,
                                               std::span<const Outcome> outcomes) {
  std::map<std::string_view, std::vector<std::size_t>> by_scope;
  for (std::size_t i = 0; i < tickets.size(); ++i)
    if (!tickets[i].held().settled) by_scope[tickets[i].held().scope].push_back(i);
  std::vector<bool> ours(tickets.size());
  for (const auto& [scope, indexes] : by_scope) {
    std::vector<Ticket::Held*> helds;
    std::vector<ClaimChange> changes;
    for (const std::size_t i : indexes) {
      helds.push_back(&tickets[i].held());
      changes.push_back(settlement(*helds.back(), outcomes[i]));
    }
    const auto written = ONCE_TRY(write(helds, changes));
    for (std::size_t k = 0; k < indexes.size(); ++k) {
      ours[indexes[k]] = written[k];
      helds[k]->settled = true;
      closed(*helds[k]);
    }
  }
  return ours;
}

ClaimChange ClaimsEngine::settlement(const Ticket::Held& held, const Outcome& outcome) const {
  ClaimChange change{.id = held.record.id, .fence = held.record.fence};
  switch (outcome.kind) {
    case Outcome::Kind::applied:
      change.to = ClaimState::done;
      if (outcome.detail.size() <= options_.result_bytes_max) change.result = outcome.detail;
      return change;
    case Outcome::Kind::rejected: change.to = ClaimState::rejected; break;
    default: change.to = ClaimState::retryable;
  }
  if (mutant(Mutant::failed_claim_is_settled)) change.to = ClaimState::done;
  change.reason = outcome.detail;
  change.steps = held.record.steps;
  return change;
}

}  // namespace once
