// SPDX-License-Identifier: Apache-2.0
// A statement of a handler that the store refuses as it would refuse it for every message: a right
// or a table is missing, it takes too long, a lock is in the way. Or it only looks so: a policy for
// rows, a name made from a value, a trigger. The other messages show which: alone, a message that
// fails is charged, and is parked in the transaction in which another runs the same statement,
// after it has failed once more. If none can run it, what failed first is told, and whose it was.
#include <fmt/format.h>

#include <algorithm>

#include "base/mutant.h"
#include "model/hint.h"
#include "model/reason.h"
#include "runtime/backoff.h"
#include "runtime/lane.h"

namespace once {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;
// So many that cannot run a statement, and none that can: the statement is to blame.
constexpr std::size_t charged_max = 100;
// What may pass is waited for so many times as long where nothing but earlier messages shows that
// others pass.
constexpr std::uint32_t patience = 4;

std::string kind_of(const Error& error) { return error.tag + " " + masked(error.text); }

// Of a message that is not the only one to fail is the rest of the reason.
std::string park_reason(const Error& error, std::uint32_t failures) {
  if (!is_transient(error.remedy)) return error.text;
  return fmt::format("gave up after {} attempts, while other messages passed: {}", failures,
                     error.text);
}

}  // namespace

std::size_t Lane::charged_count() const {
  return static_cast<std::size_t>(std::count_if(selected_.begin(), selected_.end(),
                                                [](const Item* item) { return item->charged(); }));
}

// So many of the oldest are known not to fail: those that are charged run nothing.
std::size_t Lane::passing_count() const { return std::max(unproven_, charged_count()); }

// Whether it has failed so for as many attempts as a message has.
bool Lane::lasts(const Error& error) {
  std::string kind = kind_of(error);
  if (kind != lasting_) lasting_count_ = 0;
  lasting_ = std::move(kind);
  return ++lasting_count_ >= parts_.options.retry.attempts_max;
}

// The next attempt takes those before the one that failed, or that one alone behind the charged
// ones; half of them, if nobody knows which it was.
void Lane::suspect(const Error& error) {
  const bool is_known = error.message && *error.message < selected_.size();
  if (is_known && *error.message < unproven_) unproven_ = 0;
  const std::size_t passing = passing_count();
  if (selected_.size() == passing + 1) {
    const auto last = std::find_if(selected_.rbegin(), selected_.rend(),
                                   [](const Item* item) { return !item->charged(); });
    return charge(is_known ? *selected_[*error.message] : **last, error);
  }
  if (is_transient(error.remedy) && !lasts(error)) return wait_for(a_statement, error);
  limit_ = is_known ? std::max(*error.message, passing + 1)
                    : passing + std::max<std::size_t>((selected_.size() - passing) / 2, 1);
  parts_.counters.batch_count = limit_;
}

// It failed alone. What may pass is tried again first; so often, that no other waits for it for
// ever.
void Lane::charge(Item& item, const Error& error) {
  if (!item.suspicion) item.suspicion = std::make_unique<Suspicion>();
  Suspicion& suspicion = *item.suspicion;
  if (kind_of(suspicion.why) != kind_of(error)) suspicion.failures = 0;
  suspicion.why = error;
  suspicion.ran = ran_;
  ++suspicion.failures;
  if (is_transient(error.remedy) && !suspicion.others_pass &&
      suspicion.failures < parts_.options.retry.attempts_max)
    return wait_for(a_statement, error);
  if (unproven_ > 0) ++unproven_;
  suspicion.charged = true;
  item.decided = parked(park_reason(error, suspicion.failures));
  item.park_tag = error.tag;
  limit_ = passing_count() + (charged_count() < charged_max ? 1 : 0);
  parts_.counters.batch_count = limit_;
}

void Lane::release(Item& item) {
  item.suspicion->charged = false;
  item.decided.reset();
  unproven_ = 0;
  item.park_tag = "handler";
}

// Before the commit. Another message has to run what the charged ones could not, and they must have
// failed again since one did: what was in the way may be gone.
Status Lane::check_proof(Transaction& transaction) {
  const auto again = [this](std::string text) {
    undone_ = true;
    return fail(Remedy::retry, "message", std::move(text));
  };
  bool is_proven = true;
  bool is_confirmed = true;
  for (const Item* item : selected_) {
    if (!item->charged() || item->suspicion->on_record) continue;
    is_proven = is_proven && item->suspicion->ran.are_all_in(ran_);
    is_confirmed = is_confirmed && item->suspicion->others_pass;
  }
  if (mutant(Mutant::charged_without_proof)) return {};
  if (is_proven && is_confirmed) return {};
  if (SqlTransaction* const sql = transaction.sql()) ONCE_TRY(sql->flush());
  if (!is_proven) {
    unproven_ = selected_.size();
    const std::size_t most = std::max(parts_.options.batch_count_max, unproven_ + 1);
    const bool goes_on = selected_.size() >= limit_ && charged_count() < charged_max;
    if (goes_on && limit_ < most)
      limit_ = std::min(most, limit_ * 2);
    else if (ONCE_TRY(await_proof()))
      return {};
    return again("no message has run the statement yet");
  }
  for (Item* item : selected_) {
    if (!item->charged() || item->suspicion->others_pass) continue;
    item->suspicion->others_pass = true;
    release(*item);
  }
  limit_ = charged_count() + 1;
  return again("another message passes; those that failed are tried again");
}

// Nothing that is queued shows whose fault it is. Whether the charged messages are parked, because
// others have passed earlier; else they wait for others, as long as a message is retried, or for
// what may pass.
Result<bool> Lane::await_proof() {
  std::vector<Item*> charged;
  std::vector<const Statements*> ran;
  for (Item* item : selected_) {
    if (!item->charged()) continue;
    charged.push_back(item);
    ran.push_back(&item->suspicion->ran);
  }
  const bool is_decided = std::all_of(charged.begin(), charged.end(),
                                      [](const Item* item) { return item->suspicion->on_record; });
  if (is_decided || mutant(Mutant::charged_without_proof)) return true;
  const auto may_pass = std::find_if(charged.begin(), charged.end(), [](const Item* item) {
    return is_transient(item->suspicion->why.remedy);
  });
  if (may_pass != charged.end()) {
    const bool has_lasted = std::all_of(charged.begin(), charged.end(), [this](const Item* item) {
      return !is_transient(item->suspicion->why.remedy) ||
             item->suspicion->failures >= patience * parts_.options.retry.attempts_max;
    });
    if (has_lasted && parts_.passed->take(ran)) {
      for (Item* item : charged) item->suspicion->on_record = true;
      return true;
    }
    wait_for(a_statement, (*may_pass)->suspicion->why);
    for (Item* one : charged) release(*one);
    limit_ = 1;
    return false;
  }
  Item& first = *charged.front();
  if (++first.suspicion->waits < parts_.options.retry.attempts_max &&
      charged.size() < charged_max) {
    wait_for_others(charged);
    return false;
  }
  if (!parts_.passed->take(ran)) return fail(named(first.suspicion->why, first));
  for (Item* item : charged) item->suspicion->on_record = true;
  return true;
}

// Those that come from the source let messages that waited in the store pass, and the other way
// round.
void Lane::wait_for_others(const std::vector<Item*>& charged) {
  const Item& first = *charged.front();
  const std::int64_t until_ns =
      parts_.clock.ticks_ns() +
      backoff_ms(parts_.options.retry, first.suspicion->waits) * ns_per_ms;
  limit_ = passing_count() + 1;
  if (!first.deferred()) {
    not_before_ns_ = until_ns;
    return;
  }
  for (Item* item : charged) item->not_before_ns = until_ns;
  limit_ = parts_.options.batch_count_max;
}

// The error that ends the run, with the first message that it came up for, and the way on without
// it.
Error Lane::named(Error error, const Item& item) const {
  const std::string offset = fmt::format("{}", item.delivery.offset);
  error.text += fmt::format("; it came up at offset {} of partition \"{}\"{}", offset,
                            item.delivery.partition,
                            item.id.empty() ? "" : fmt::format(", id \"{}\"", item.id));
  if (item.suspicion) error.text += ", and no other message shows that the statement can be run";
  if (item.deferred())
    error.text += fmt::format("; {} gives this message up, which waits in the store",
                              drop_hint(item, "it cannot be handled"));
  else if (item.delivery.session != 0)  // its offset means nothing to the next session
    error.text +=
        "; if only this message is to blame, it is parked as soon as another one has passed the "
        "statement; or take it out of the queue with the broker's own tools";
  else
    error.text += fmt::format("; if only this message is to blame, {} parks it",
                              hint({"park", "add", "FILE", "--partition", item.delivery.partition,
                                    "--offset", offset, "--reason", "it cannot be handled"}));
  error.cause = Cause::other;
  error.message.reset();
  return error;
}

Error Lane::named(Error error) const {
  if (!error.message || *error.message >= selected_.size() || error.tag == "fenced") return error;
  return named(error, *selected_[*error.message]);
}

}  // namespace once
