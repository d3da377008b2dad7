// SPDX-License-Identifier: Apache-2.0
#include "simulation/claims_world.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "store/memory/memory.h"
#include "testing/random.h"
#include "testing/sim_clock.h"

namespace once::simulation {
namespace {

constexpr std::size_t ids_count = 4;
constexpr std::size_t owners_count = 3;
constexpr std::int64_t lease_ms = 1000;
constexpr std::string_view scope = "bank";

// The store as one process sees it: once that is dead, nothing it does arrives.
class ProcessStore final : public Store, private ClaimStore {
 public:
  explicit ProcessStore(MemoryStore& store) : store_(store) {}
  void die() { dead_ = true; }

  StoreTraits traits() const override { return store_.traits(); }
  Result<std::unique_ptr<Transaction>> begin(std::string_view) override { return fail(gone()); }
  Result<Position> take(std::string_view, std::string_view, std::string_view) override {
    return fail(gone());
  }
  Result<Position> position(std::string_view, std::string_view) override { return fail(gone()); }
  Result<Forgotten> forget(std::string_view, std::int64_t, std::size_t) override {
    return fail(gone());
  }
  ClaimStore* claims() override { return this; }

 private:
  Result<std::vector<ClaimAnswer>> claim(std::string_view where, const ClaimTerms& terms,
                                         std::span<const ClaimRequest> requests) override {
    if (dead_) return fail(gone());
    return store_.claims()->claim(where, terms, requests);
  }
  Result<std::vector<bool>> renew(std::string_view where, std::int64_t lease,
                                  std::span<const HeldClaim> claims) override {
    if (dead_) return fail(gone());
    return store_.claims()->renew(where, lease, claims);
  }
  Result<std::vector<bool>> change(std::string_view where,
                                   std::span<const ClaimChange> changes) override {
    if (dead_) return fail(gone());
    return store_.claims()->change(where, changes);
  }
  Result<ClaimRecord> force(std::string_view where, const ClaimForce& force) override {
    if (dead_) return fail(gone());
    return store_.claims()->force(where, force);
  }
  Result<std::vector<ClaimRecord>> claims(std::string_view where, std::optional<ClaimState> state,
                                          std::string_view from_id,
                                          std::size_t count_max) override {
    if (dead_) return fail(gone());
    return store_.claims()->claims(where, state, from_id, count_max);
  }

  static Error gone() { return {Remedy::retry, "dead", "this process is dead", std::nullopt}; }

  MemoryStore& store_;
  bool dead_ = false;
};

// What is paid: counts what really happened.
class OtherSide {
 public:
  explicit OtherSide(Side side) : side_(side) {}

  // False: refused, and nothing happened.
  bool pay(const std::string& id, const std::string& downstream_id, std::uint64_t fence) {
    Account& account = accounts_[downstream_id];
    if (side_ == Side::can_be_asked && fence < account.fence) return false;
    account.fence = std::max(account.fence, fence);
    if (side_ == Side::tells_duplicates && account.paid) return true;
    account.paid = true;
    ++effects_[id];
    return true;
  }
  Resolution ask(const std::string& downstream_id, std::uint64_t fence) {
    Account& account = accounts_[downstream_id];
    account.fence = std::max(account.fence, fence);
    if (account.paid) return {Resolution::Kind::happened, "paid"};
    return {Resolution::Kind::did_not_happen, {}};
  }
  int effects(const std::string& id) { return effects_[id]; }

 private:
  struct Account {
    bool paid = false;
    std::uint64_t fence = 0;
  };
  const Side side_;
  std::map<std::string, Account> accounts_;
  std::map<std::string, int> effects_;
};

class World {
 public:
  explicit World(const ClaimsWorldOptions& options)
      : options_(options), random_(options.seed), other_(options.side) {
    store_.set_commit_fault([this] { return commit_fault(); });
    for (Owner& owner : owners_) start(owner);
  }

  ClaimsWorldReport run() {
    for (std::size_t i = 0; i < options_.events_max; ++i) event();
    peace();
    check();
    return std::move(report_);
  }

 private:
  // One program: what it is doing, if anything.
  struct Owner {
    std::unique_ptr<ProcessStore> store;
    std::unique_ptr<Claims> claims;
    std::optional<Ticket> ticket;
    bool paid = false;
  };

  template <class... Arguments>
  void note(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    report_.trace.push_back(fmt::format(text, std::forward<Arguments>(arguments)...));
  }
  void reached(const char* state) { ++report_.reached[state]; }
  std::size_t number(const Owner& owner) const {
    return static_cast<std::size_t>(&owner - owners_.data());
  }
  static std::string id_of(std::size_t i) { return fmt::format("pay {}", i); }

  MemoryStore::CommitFault commit_fault() {
    using Fault = MemoryStore::CommitFault;
    if (!faulty_ || !random_.chance(60)) return Fault::none;
    switch (random_.below(3)) {
      case 0: reached("write refused"); return Fault::refused;
      case 1: reached("write lost before"); return Fault::lost_before;
      default: reached("write lost after"); return Fault::lost_after;
    }
  }

  void start(Owner& owner) {
    owner.store = std::make_unique<ProcessStore>(store_);
    ClaimsOptions options;
    options.owner = fmt::format("owner {}", number(owner));
    options.lease_ms = lease_ms;
    options.renew_in_background = false;
    switch (options_.side) {
      case Side::tells_duplicates:
      case Side::at_least_once: options.after_loss = AfterLoss::retry; break;
      case Side::can_be_asked:
      case Side::asked_unfenced:
        options.after_loss = AfterLoss::doubt;
        options.resolver = [this](const Ticket& ticket) { return resolve(ticket); };
        break;
      case Side::at_most_once: options.after_loss = AfterLoss::give_up; break;
    }
    auto made = Claims::make(*owner.store, std::move(options), clock_);
    ONCE_ASSERT(made);
    owner.claims = std::move(*made);
    owner.paid = false;
  }

  Resolution resolve(const Ticket& ticket) {
    if (faulty_ && random_.chance(200)) {
      reached("nobody could say");
      return {};
    }
    reached("the other side was asked");
    return other_.ask(ticket.downstream_id(), ticket.fence());
  }

  void event() {
    Owner& owner = owners_[random_.below(owners_count)];
    const std::size_t die = random_.below(100);
    if (die < 8) return kill(owner);
    if (die < 25) return pass_time();
    if (die < 35) return (void)owner.claims->renew();
    if (die < 37 && survives_restore()) return back_up_or_go_back();
    if (!owner.ticket) return ask(owner, id_of(random_.below(ids_count)));
    if (!owner.paid) return pay(owner);
    settle(owner);
  }

  void kill(Owner& owner) {
    note("owner {} dies", number(owner));
    if (owner.ticket) reached(owner.paid ? "died after the effect" : "died before the effect");
    owner.store->die();
    owner.ticket.reset();
    owner.claims.reset();
    start(owner);
  }

  // A store that was restored does not know what was done since. Only the other side can: where it
  // is asked by a fence, or nobody is to pay twice, no promise holds (docs/guarantees.md).
  bool survives_restore() const {
    return options_.side == Side::tells_duplicates || options_.side == Side::at_least_once;
  }
  void back_up_or_go_back() {
    if (!backup_ || random_.chance(500)) {
      backup_ = store_.snapshot();
      return;
    }
    reached("the store goes back");
    note("the store goes back");
    store_.restore(*backup_);
  }

  void pass_time() {
    const auto ms = static_cast<std::int64_t>(random_.below(2 * lease_ms));
    note("{} ms pass", ms);
    clock_.step(ms);
  }

  void ask(Owner& owner, const std::string& id) {
    ClaimVerdict verdict = owner.claims->begin(scope, {.id = id});
    note("owner {} asks for {}: verdict {}", number(owner), id, verdict.index());
    if (auto* mine = std::get_if<Execute>(&verdict)) {
      if (mine->ticket.attempt() > 1) reached("another attempt");
      owner.ticket.emplace(std::move(mine->ticket));
      owner.paid = false;
    }
  }

  void pay(Owner& owner) {
    Ticket& ticket = *owner.ticket;
    const std::string id(ticket.id());
    if (faulty_ && random_.chance(100)) {
      note("owner {} cannot reach the other side for {}", number(owner), id);
      (void)ticket.release("refused");
      return drop(owner);
    }
    if (!other_.pay(id, ticket.downstream_id(), ticket.fence())) {
      reached("a stale fence was refused");
      note("owner {} pays {} too late", number(owner), id);
      return drop(owner);
    }
    note("owner {} pays {}, fence {}", number(owner), id, ticket.fence());
    owner.paid = true;
    if (faulty_ && random_.chance(150)) {
      reached("answer lost");
      note("owner {} gets no answer", number(owner));
      drop(owner);  // unsettled: nobody knows
    }
  }

  void settle(Owner& owner) {
    const Status done = owner.ticket->done("paid");
    note("owner {} settles {}: {}", number(owner), owner.ticket->id(),
         done ? "done" : done.error().tag);
    if (!done && done.error().tag == "superseded") reached("superseded");
    if (!done && done.error().remedy == Remedy::retry) return;  // the same ticket, once more
    drop(owner);
  }

  void drop(Owner& owner) {
    owner.ticket.reset();
    owner.paid = false;
  }

  // No faults from here on: what is under way is finished, or its lease runs out.
  void peace() {
    faulty_ = false;
    note("peace");
    for (Owner& owner : owners_)
      while (owner.ticket) owner.paid ? settle(owner) : pay(owner);
    for (int round = 0; round < 3; ++round) {
      clock_.step(2 * lease_ms);
      for (std::size_t i = 0; i < ids_count; ++i) {
        ask(owners_[0], id_of(i));
        while (owners_[0].ticket) owners_[0].paid ? settle(owners_[0]) : pay(owners_[0]);
      }
    }
  }

  void check() {
    for (std::size_t i = 0; i < ids_count; ++i) {
      const std::string id = id_of(i);
      const int effects = other_.effects(id);
      bool kept = effects == 1;
      if (options_.side == Side::at_least_once) kept = effects >= 1;
      if (options_.side == Side::at_most_once) kept = effects <= 1;
      if (!kept) report_.violations.push_back(fmt::format("{} happened {} times", id, effects));
      const auto record = store_.claims()->claims(scope, std::nullopt, id, 1);
      const bool settled = record && !record->empty() &&
                           (record->front().state == ClaimState::done ||
                            record->front().state == ClaimState::rejected);
      if (!settled) report_.violations.push_back(fmt::format("{} is not settled", id));
    }
  }

  const ClaimsWorldOptions options_;
  testing::Random random_;
  testing::SimClock clock_;
  MemoryStore store_{clock_};
  OtherSide other_;
  ClaimsWorldReport report_;
  bool faulty_ = true;
  std::optional<MemoryState> backup_;
  std::array<Owner, owners_count> owners_;  // last: tickets use all of the above
};

}  // namespace

ClaimsWorldReport run_claims_world(const ClaimsWorldOptions& options) {
  return World(options).run();
}

}  // namespace once::simulation
