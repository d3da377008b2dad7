// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/result.h>
#include <once/store.h>
#include <once/transaction.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace once {

// Guarding an effect that is not in the store: a payment at a bank, a mail, another database. The
// right to run it is claimed first and settled afterwards; in between the claim has an owner, a
// lease and a fence. Where the effect *is* in the store, use a transaction: it leaves no window.
//
//   switch on claims.begin("payments", {.id = "order 100"}):
//     Execute     run the effect, then settle the ticket
//     Duplicate   it was settled before; here is the outcome
//     InProgress  somebody runs it now
//     Mismatch    the id was used for something else
//     InDoubt     its owner was lost, and nobody knows whether the effect happened
//     TooOld      the id is from before the horizon: whether it was settled is forgotten
//     Stale       a younger generation of this id was opened
//     Unavailable the store could not answer; nothing was claimed

enum class ClaimState : std::uint8_t {
  running,    // claimed: its owner has the lease
  retryable,  // nobody runs it, and whoever comes next may
  in_doubt,   // the effect may have happened: only a resolver or a person goes on from here
  done,
  rejected,  // a final refusal, remembered
};

// What becomes of a claim whose owner is lost: its lease ran out, or its ticket died unsettled.
enum class AfterLoss : std::uint8_t {
  retry,    // the effect may be repeated: the other side tells duplicates, or they do no harm
  doubt,    // the other side can be asked
  give_up,  // it must not be repeated: the claim counts as rejected
};

constexpr const char* name_of(ClaimState state) {
  switch (state) {
    case ClaimState::running: return "running";
    case ClaimState::retryable: return "retryable";
    case ClaimState::in_doubt: return "in_doubt";
    case ClaimState::done: return "done";
    case ClaimState::rejected: return "rejected";
  }
  return "?";
}

// A finished step of an effect that has several.
struct StepRecord {
  std::string name;
  std::string result;

  bool operator==(const StepRecord&) const = default;
};

struct ClaimRecord {
  std::string id;
  ClaimState state = ClaimState::retryable;
  std::uint64_t generation = 1;  // grows when a person opens a settled claim again
  std::uint64_t fence = 0;       // grows with every owner; a smaller one may not write
  std::uint32_t attempts = 0;    // of this generation
  AfterLoss after_loss = AfterLoss::doubt;
  Fingerprint fingerprint = {};
  std::int64_t born_ms = 0;
  std::int64_t changed_ms = 0;
  std::int64_t lease_until_ms = 0;  // by the store's clock; 0: nobody holds it
  std::string owner = {};
  std::optional<std::string> result = {};  // of `done`; unset: it was not kept
  std::string reason = {};                 // of every other state but `running`
  std::vector<StepRecord> steps = {};

  bool operator==(const ClaimRecord&) const = default;
};

// --- What a store implements.

struct ClaimRequest {
  std::string_view id;  // never empty
  Fingerprint fingerprint = {};
  std::int64_t born_ms = 0;      // 0: now
  std::uint64_t generation = 0;  // 0: whichever is open; else an older one is answered with `stale`
};

struct ClaimTerms {
  std::string_view owner;
  std::int64_t lease_ms = 0;
  AfterLoss after_loss = AfterLoss::doubt;
};

// What the store did. `record` is the claim as it stands now, where there is one.
struct ClaimAnswer {
  enum class Kind : std::uint8_t {
    granted,   // ours: run it
    doubtful,  // ours to resolve: it is in doubt
    settled,   // done or rejected before
    busy,      // another owner has it, or an earlier request of the same span
    mismatch,  // claimed before with another fingerprint
    too_old,   // born below the horizon, and there is no record
    stale,     // a younger generation is open
  };
  Kind kind = Kind::granted;
  ClaimRecord record;
  std::int64_t now_ms = 0;  // of the store
  std::int64_t horizon_ms = 0;
};

// A claim we hold.
struct HeldClaim {
  std::string_view id;
  std::uint64_t fence = 0;
};

// What the owner of a claim writes.
struct ClaimChange {
  std::string_view id;
  std::uint64_t fence = 0;
  ClaimState to = ClaimState::done;  // `running`: it goes on, and the lease stays
  std::optional<std::string_view> result = {};
  std::string_view reason = {};
  std::span<const StepRecord> steps = {};  // all finished ones
};

// What a person writes, whoever owns the claim: fenced off, and noted in the operation log.
// `retryable` opens a new generation.
struct ClaimForce {
  std::string_view id;
  ClaimState to = ClaimState::done;
  std::optional<std::string_view> result = {};
  std::string_view reason;
};

// Where claims live. Every method is one round trip and atomic per claim; leases are judged by the
// store's clock; a stale fence never writes. Thread-safe.
class ClaimStore {
 public:
  virtual ~ClaimStore() = default;

  // An answer for each request, duplicates inside the span included.
  [[nodiscard]] virtual Result<std::vector<ClaimAnswer>> claim(
      std::string_view scope, const ClaimTerms& terms, std::span<const ClaimRequest> requests) = 0;

  // True for each claim that is still ours, and then its lease begins anew.
  [[nodiscard]] virtual Result<std::vector<bool>> renew(std::string_view scope,
                                                        std::int64_t lease_ms,
                                                        std::span<const HeldClaim> claims) = 0;

  // True for each claim that was still ours; the others are left alone.
  [[nodiscard]] virtual Result<std::vector<bool>> change(std::string_view scope,
                                                         std::span<const ClaimChange> changes) = 0;

  // The claim as it stands now. A claim that does not exist is an error with the tag "missing".
  [[nodiscard]] virtual Result<ClaimRecord> force(std::string_view scope,
                                                  const ClaimForce& force) = 0;

  // Claims from this id on, in the order of ids; only those in `state`, if one is given. A claim
  // whose lease has run out is listed as what it has become.
  [[nodiscard]] virtual Result<std::vector<ClaimRecord>> claims(std::string_view scope,
                                                                std::optional<ClaimState> state,
                                                                std::string_view from_id,
                                                                std::size_t count_max) = 0;
};

// --- What a program uses.

class Claims;

// The right to run one effect. Settled by exactly one of `done`, `reject`, `release` and `doubt`;
// a ticket that dies unsettled leaves the claim as its AfterLoss says, never erased. Used by one
// thread at a time; must not outlive its Claims.
class Ticket {
 public:
  struct Held;
  explicit Ticket(std::unique_ptr<Held> held);
  Ticket(Ticket&&) noexcept;
  Ticket& operator=(Ticket&&) noexcept;
  ~Ticket();

  const ClaimRecord& record() const;
  std::string_view id() const { return record().id; }
  // For the resource behind the effect: let it refuse smaller numbers.
  std::uint64_t fence() const { return record().fence; }
  std::uint32_t attempt() const { return record().attempts; }
  // Another owner has taken over; what we still do is too late.
  bool lost() const;

  // The id to give to the other side: derived from scope, id, generation and step, so the same at
  // every attempt. 32 hexadecimal digits.
  std::string downstream_id(std::string_view step = {}) const;

  // Runs `work` with the step's downstream id, unless this step was finished by an earlier attempt:
  // then it answers the result it had. The result is durable when it returns.
  using Work = std::function<Result<std::string>(const std::string& downstream_id)>;
  [[nodiscard]] Result<std::string> step(std::string_view name, const Work& work);

  // A claim in doubt turned out not to have happened: run it now.
  [[nodiscard]] Status proceed();

  // All of these fail with the tag "superseded" if the claim is no longer ours.
  [[nodiscard]] Status done(std::string_view result = {});
  [[nodiscard]] Status reject(std::string_view reason);
  // Nothing happened beyond the finished steps; the next attempt goes on behind them.
  [[nodiscard]] Status release(std::string_view reason);
  // As `release`, but the finished steps are undone or harmless, and are forgotten.
  [[nodiscard]] Status release_all(std::string_view reason);
  // It may have happened.
  [[nodiscard]] Status doubt(std::string_view reason);

  // For the Claims it came from.
  Held& held() { return *held_; }

 private:
  std::unique_ptr<Held> held_;
};

struct Execute {
  Ticket ticket;
};
struct Duplicate {
  Outcome outcome;          // `applied` or `rejected`
  bool result_kept = true;  // false: it was larger than the limit
};
struct InProgress {
  std::int64_t retry_after_ms = 0;
};
struct Mismatch {
  Fingerprint stored;
  Fingerprint offered;
};
struct InDoubt {
  Ticket ticket;  // to settle it, or to `proceed`; let go unsettled, it stays in doubt
};
struct TooOld {
  std::int64_t horizon_ms = 0;
};
struct Stale {
  std::uint64_t generation = 0;  // that is open
};
struct Unavailable {
  Error error;
};
using ClaimVerdict =
    std::variant<Execute, Duplicate, InProgress, Mismatch, InDoubt, TooOld, Stale, Unavailable>;

// What the other side knows of an effect in doubt.
struct Resolution {
  enum class Kind : std::uint8_t { happened, did_not_happen, refused, unknown };
  Kind kind = Kind::unknown;
  std::string detail = {};  // the result of `happened`, the reason of `refused`
};
// Asks the other side. It may use the ticket's steps and downstream ids, but does not settle it.
using Resolver = std::function<Resolution(const Ticket&)>;

// What happens when another owner runs the effect.
enum class WhenBusy : std::uint8_t {
  tell,    // InProgress at once
  wait,    // wait for the outcome, up to `wait_ms_max`; then InProgress
  refuse,  // Unavailable, with the tag "busy"
};

struct ClaimsOptions {
  std::string owner = {};  // for people; empty: host and process
  std::int64_t lease_ms = 30'000;
  AfterLoss after_loss = AfterLoss::doubt;
  WhenBusy when_busy = WhenBusy::tell;
  std::int64_t wait_ms_max = 10'000;
  std::size_t result_bytes_max = 64 << 10;  // a larger result is not kept
  Resolver resolver = {};                   // asked by `begin` before it answers InDoubt
  bool renew_in_background = true;
};

// The claims of one program on one store. Callers in this program that want the same id attach to
// the one that runs it, and leases are renewed by a thread of its own. Thread-safe. The store
// outlives it, and it outlives its tickets.
class Claims {
 public:
  // A store without claims is an error.
  static Result<std::unique_ptr<Claims>> make(Store& store, ClaimsOptions options,
                                              Clock& clock = system_clock());
  virtual ~Claims() = default;

  // `scope` says who remembers; never empty, tenant included.
  [[nodiscard]] virtual ClaimVerdict begin(std::string_view scope, const ClaimRequest& request) = 0;
  // The same for many, in one round trip; busy ones are told, never waited for.
  [[nodiscard]] virtual std::vector<ClaimVerdict> begin(std::string_view scope,
                                                        std::span<const ClaimRequest> requests) = 0;

  // Settles many tickets in one round trip, each as `applied` or `rejected`, and others as a
  // release. False for those that were superseded.
  [[nodiscard]] virtual Result<std::vector<bool>> settle(std::span<Ticket> tickets,
                                                         std::span<const Outcome> outcomes) = 0;

  // Asks the resolver about every claim in doubt; answers how many are left, which is the queue
  // that people have to look at (ClaimStore::claims).
  [[nodiscard]] virtual Result<std::size_t> resolve(std::string_view scope) = 0;

  // Renews the leases of all tickets now.
  [[nodiscard]] virtual Status renew() = 0;
};

}  // namespace once
