// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/outcome.h>
#include <once/records.h>
#include <once/result.h>
#include <once/transaction.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace once {

// What every store agrees on about ids, so that none of them accepts what another refuses.
inline constexpr std::size_t id_bytes_max = 1024;
inline constexpr std::size_t name_bytes_max = 255;  // of scopes, partitions, destinations

// A scope is never empty and has a limit.
[[nodiscard]] Status check_scope(std::string_view scope);
[[nodiscard]] Status check_partition(std::string_view partition);
[[nodiscard]] Status check_destination(std::string_view destination);
// That of a topic; empty if it is not known.
[[nodiscard]] Status check_source_identity(std::string_view identity);

// Refuse empty and over-long ids (remedy `park`) before anything is written.
[[nodiscard]] Status check_id(std::string_view id);
[[nodiscard]] Status check_entries(std::span<const Entry> entries);

// Refuses to move a position back.
[[nodiscard]] Status check_advance(std::string_view partition, const Position& from,
                                   std::int64_t to);

// `retry` cannot be recorded.
[[nodiscard]] Status check_settle(const Outcome& outcome);

// Two advances of one transaction, as one.
[[nodiscard]] Progress joined(const Progress& earlier, const Progress& later);

// The fence of a new owner. It is at least the time: after a store was restored from a backup,
// counting alone would give it a fence that an owner from before the restore may still hold.
[[nodiscard]] std::uint64_t next_fence(std::uint64_t last, std::int64_t now_ms);

// The error of everyone who is not the owner any more.
[[nodiscard]] Error fenced_error(std::string_view scope, std::string_view partition,
                                 const Position& expected, const Position& actual);

// The error of a position that belongs to another topic than the one that is read.
[[nodiscard]] Error other_source_error(std::string_view scope, std::string_view partition,
                                       std::int64_t offset, std::string_view stored_identity,
                                       std::string_view offered_identity);
// Whether a stored and an offered identity contradict each other; what is unknown does not.
constexpr bool is_other_source(std::string_view stored, std::string_view offered) {
  return !stored.empty() && !offered.empty() && stored != offered;
}

// What a person changes in the books has a reason.
[[nodiscard]] Status check_reason(std::string_view reason);
// Names and numbers of a correction that no store accepts.
[[nodiscard]] Status check_correction(const Correction& correction);
// How the operation log calls it, and what it is about.
[[nodiscard]] std::string_view action_of(const Correction& correction);
[[nodiscard]] std::string subject_of(const Correction& correction, std::string_view scope);

// Which scope's log has the line.
[[nodiscard]] std::string_view log_scope_of(const Correction& correction, std::string_view scope);

// Lines of the operation log that a scope keeps.
inline constexpr std::int64_t operations_max = 10'000;

// The errors of a person who asks for what is not there.
[[nodiscard]] Error missing_id(std::string_view scope, std::string_view id);
[[nodiscard]] Error missing_parked(std::string_view scope, std::int64_t number);
[[nodiscard]] Error missing_deferred(std::string_view scope, std::int64_t number);
// The error of a transaction that lost a record to another one.
[[nodiscard]] Error resumed_elsewhere(std::string_view where, std::string_view id);
// By what messages of one key are found among those that wait: a digest, since keys may be long.
// Empty where later messages do not wait behind it.
[[nodiscard]] std::string order_token(const Delivery& delivery);
[[nodiscard]] std::string order_token(std::string_view key);
// What the ledger says of a message that a person has given up while it waited.
[[nodiscard]] Outcome abandoned(std::string_view reason);
[[nodiscard]] std::string deferral_note(std::int64_t number, std::string_view reason);
// What the operation log says of an id that is freed, of a replay and of a drop: the reason, and
// what it was about.
[[nodiscard]] std::string force_note(const LedgerRecord& was, std::string_view reason);
[[nodiscard]] std::string replay_note(std::int64_t number, std::string_view destination,
                                      std::string_view reason);
[[nodiscard]] std::string drop_note(std::int64_t number, std::string_view reason);
// The same of a row of the outbox that is given up with its destination. The log has the ids of the
// oldest so many of them.
[[nodiscard]] std::string drop_pending_note(std::string_view destination, std::string_view reason);
inline constexpr std::int64_t dropped_ids_max = 1000;

// Times before 1970 count as 1970: a horizon of 0 has forgotten nothing.
constexpr std::int64_t ledger_time(std::int64_t born_ms) {
  return std::max<std::int64_t>(born_ms, 0);
}

}  // namespace once
