// SPDX-License-Identifier: Apache-2.0
#include "runtime/role.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>

#include "base/process.h"
#include "model/hint.h"

namespace once {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;
// A lease outlives some renewals that are late or fail.
constexpr std::int64_t renewals_per_lease = 5;
constexpr std::int64_t stand_by_ms_max = 500;

RoleOptions with_owner(RoleOptions options) {
  static std::atomic<std::uint64_t> count{0};
  // Behind a second blank, so that the process can still be recognised.
  if (options.owner.empty()) options.owner = fmt::format("{} {}", process_identity(), ++count);
  return options;
}

std::string_view process_of(std::string_view owner) { return owner.substr(0, owner.rfind(' ')); }

}  // namespace

Role::Role(ClaimStore& claims, RoleOptions options, Clock& clock)
    : claims_(claims), options_(with_owner(std::move(options))), clock_(clock) {}

Result<bool> Role::hold() {
  const std::int64_t now_ns = clock_.ticks_ns();
  if (now_ns < ask_at_ns_) return held_;
  // Who comes late with a renewal may have had a successor, and a store that went back would not
  // know of it.
  const bool late = now_ns - held_since_ns_ > options_.lease_ms * ns_per_ms;
  const bool held = held_ && !late && ONCE_TRY(renew());
  if (!held) {
    held_ = ONCE_TRY(claim());
    ++tenure_;
  }
  held_since_ns_ = now_ns;
  const std::int64_t renew_ms = options_.lease_ms / renewals_per_lease;
  ask_at_ns_ = now_ns + (held_ ? renew_ms : std::min(renew_ms, stand_by_ms_max)) * ns_per_ms;
  return held_;
}

Result<bool> Role::renew() {
  const HeldClaim held{options_.id, fence_};
  held_ = ONCE_TRY(claims_.renew(options_.scope, options_.lease_ms, std::span(&held, 1))).at(0);
  return held_;
}

Result<bool> Role::claim() {
  const ClaimTerms terms{options_.owner, options_.lease_ms, AfterLoss::retry};
  const ClaimRequest request{.id = options_.id};
  const auto ask = [&]() -> Result<ClaimAnswer> {
    return ONCE_TRY(claims_.claim(options_.scope, terms, std::span(&request, 1))).at(0);
  };
  ClaimAnswer answer = ONCE_TRY(ask());
  if (answer.kind == ClaimAnswer::Kind::busy && is_dead(answer.record)) {
    ONCE_TRY(bury(answer.record));
    answer = ONCE_TRY(ask());
  }
  fence_ = answer.record.fence;
  holder_ = process_of(answer.record.owner).substr(0, answer.record.owner.find(' '));
  if (answer.kind == ClaimAnswer::Kind::granted) return true;
  // Ours already: the answer to an earlier request was lost.
  if (answer.kind == ClaimAnswer::Kind::busy) return answer.record.owner == options_.owner;
  return fail(Remedy::stop, "role",
              fmt::format("the claim \"{}\" in the scope {} is {}: it was changed by hand. To let "
                          "a process have it again: {}",
                          options_.id, options_.scope, name_of(answer.record.state),
                          hint({"claims", "settle", options_.id, "--scope", options_.scope, "--as",
                                "retryable", "--reason", "was changed by hand"})));
}

bool Role::is_dead(const ClaimRecord& record) {
  if (record.owner == options_.owner) return false;
  if (process_is_gone(process_of(record.owner))) return true;
  const std::int64_t now_ns = clock_.ticks_ns();
  if (record.fence != seen_fence_ || record.lease_until_ms != seen_until_ms_) {
    seen_fence_ = record.fence;
    seen_until_ms_ = record.lease_until_ms;
    seen_since_ns_ = now_ns;
  }
  return now_ns - seen_since_ns_ > 2 * options_.lease_ms * ns_per_ms;
}

// In the name of an owner that can no longer do it.
Status Role::bury(const ClaimRecord& record) {
  const std::string reason = fmt::format("its owner {} has died", record.owner);
  const ClaimChange change{.id = options_.id,
                           .fence = record.fence,
                           .to = ClaimState::retryable,
                           .result = {},
                           .reason = reason,
                           .steps = {}};
  ONCE_TRY(claims_.change(options_.scope, std::span(&change, 1)));
  return {};
}

void Role::release(std::string_view reason) {
  if (!std::exchange(held_, false)) return;
  ask_at_ns_ = 0;
  const ClaimChange change{.id = options_.id,
                           .fence = fence_,
                           .to = ClaimState::retryable,
                           .result = {},
                           .reason = reason,
                           .steps = {}};
  // What cannot be told is found out when the lease runs out.
  (void)claims_.change(options_.scope, std::span(&change, 1));
}

}  // namespace once
