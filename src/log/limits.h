// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The limits of the log. Every decoder and every buffer checks against these before it allocates.
namespace once::log {

inline constexpr std::size_t message_bytes_max = 16u << 20;  // one encoded record
inline constexpr std::size_t headers_max = 1000;             // per message
inline constexpr std::size_t batch_count_max = 100'000;      // messages of one append
inline constexpr std::size_t batch_bytes_max = 32u << 20;    // encoded bytes of one append
inline constexpr std::size_t group_bytes_max = 64u << 20;    // what one write may hold
inline constexpr std::size_t frame_bytes_goal = 1u << 20;    // a fuller frame takes no more records
inline constexpr std::size_t body_bytes_max = 64u << 20;     // of a frame, table snapshots included

inline constexpr std::size_t producer_name_bytes_max = 255;
inline constexpr std::size_t producers_max = 100'000;  // per partition
inline constexpr std::size_t guests_max = 10'000;      // unnamed producers, per partition
// How long a producer is known at least behind the retention of its messages: 7 days.
inline constexpr std::int64_t producer_kept_ms_least = 7 * 86'400'000;
inline constexpr std::size_t intervals_max = 10'000;           // holes + 1, per producer
inline constexpr std::size_t intervals_total_max = 1'000'000;  // per partition
inline constexpr std::size_t ranges_remembered = 64;           // per producer, for original offsets

inline constexpr std::int64_t segment_bytes_least = 1024;  // smallest segment_bytes_max
inline constexpr std::int64_t segment_bytes_most = std::int64_t{1} << 40;
inline constexpr std::int64_t reserve_bytes_max = 4 << 20;  // disk space asked for at a time
inline constexpr std::int64_t index_every_bytes = 32 << 10;
inline constexpr std::size_t batches_located_max = 1024;  // record batches of one answer
inline constexpr std::uint32_t partitions_max = 1024;     // per topic
inline constexpr std::size_t topic_name_bytes_max = 200;

}  // namespace once::log
