// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// The life of a claim as pure functions, so that every store has the same. A store reads the row,
// lets one of these decide, and writes the row back, atomically; `now_ms` is the store's clock.
//
//   (none) ── claim ──▶ running ── done ──▶ done
//                        │  ▲ │ └─ reject ─▶ rejected      give_up: lost ▶ rejected
//              release   │  │ │ lost, doubt
//                        ▼  │ ▼
//                  retryable in_doubt ── proceed ▶ running, or settled by its resolver

inline constexpr std::size_t claim_steps_bytes_max = 256 << 10;

[[nodiscard]] Status check_terms(const ClaimTerms& terms);
[[nodiscard]] Status check_requests(std::span<const ClaimRequest> requests);
[[nodiscard]] Status check_changes(std::span<const ClaimChange> changes);
[[nodiscard]] Status check_force(const ClaimForce& force);

// What a claim becomes when its owner is lost.
[[nodiscard]] ClaimState state_after(AfterLoss after_loss);

// How the claim stands at this time: a lease that has run out is a lost owner.
[[nodiscard]] ClaimRecord as_of(ClaimRecord row, std::int64_t now_ms);

// Answers a request and makes `row` what is to be stored. Without a row, there is no claim yet.
[[nodiscard]] ClaimAnswer answer_claim(std::optional<ClaimRecord>& row, const ClaimRequest& request,
                                       const ClaimTerms& terms, std::int64_t now_ms,
                                       std::int64_t horizon_ms);

// False: it is not the caller's any more, and the row is left as it is.
[[nodiscard]] bool renew_claim(ClaimRecord& row, std::uint64_t fence, std::int64_t lease_ms,
                               std::int64_t now_ms);
[[nodiscard]] bool change_claim(ClaimRecord& row, const ClaimChange& change, std::int64_t now_ms);

void force_claim(ClaimRecord& row, const ClaimForce& force, std::int64_t now_ms);

// What the operation log calls it.
[[nodiscard]] std::string_view force_action(ClaimState to);
[[nodiscard]] Error missing_claim(std::string_view scope, std::string_view id);

// Whether nobody will ask for it any more: only what is settled can be forgotten.
[[nodiscard]] bool can_be_forgotten(const ClaimRecord& row, std::int64_t now_ms,
                                    std::int64_t horizon_ms);

[[nodiscard]] std::string encode_steps(std::span<const StepRecord> steps);
[[nodiscard]] Result<std::vector<StepRecord>> decode_steps(std::string_view bytes);

}  // namespace once
