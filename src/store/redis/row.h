// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>
#include <once/records.h>

#include <cstdint>
#include <string>
#include <string_view>

// Rows as Redis keeps them, to the byte; script.cc reads and writes the same. Numbers of eight
// bytes have the largest first, so that scripts compare them as texts.
//
//   ledger   what (1: outcome, +16 with a fingerprint) · born (8) · recorded (8) · offset (8) ·
//            partition (length 1, bytes) · fingerprint (17, if any) · result or reason (the rest)
//   claim    what (1: state, +16 after loss) · lease (8) · changed (8) · born (8) · fence (8) ·
//            kept (length 1; attempts and generation as varints, fingerprint of 17 bytes if any) ·
//            owner (length 1, bytes) · tail (result: 0, or 1 and varint length and bytes; reason:
//            varint length and bytes; steps: the rest)

namespace once {

std::string eight_bytes(std::int64_t number);
std::int64_t number_in_eight(std::string_view bytes);

// Without its id, under which it is kept.
std::string ledger_row(const LedgerRecord& record);
[[nodiscard]] Result<LedgerRecord> ledger_record(std::string_view id, std::string_view row);

std::string claim_row(const ClaimRecord& record);
[[nodiscard]] Result<ClaimRecord> claim_record(std::string_view id, std::string_view row);

// Parts of a claim's row, for scripts that put it together.
std::string claim_kept(const ClaimRecord& record);
std::string claim_owner(std::string_view owner);
std::string claim_tail(const ClaimRecord& record);

}  // namespace once
