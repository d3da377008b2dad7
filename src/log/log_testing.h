// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "log/partition.h"
#include "testing/memory_files.h"

// What the tests of the log share.
namespace once::log {

class TestClock final : public Clock {
 public:
  std::int64_t now_ms() override { return time_ms; }
  std::int64_t ticks_ns() override { return time_ms * 1'000'000; }
  std::int64_t time_ms = 1'700'000'000'000;
};

// A partition in memory that can be opened again and again.
struct Bench {
  testing::MemoryFiles files;
  TestClock clock;
  PartitionOptions options;
  std::string directory = "data/topic/0";
  std::uint64_t drawn = 0x1234'5678'9abc'def1;

  Bench() {
    options.random = [this] { return drawn += 0x9e37'79b9'7f4a'7c15; };
  }
  Result<std::unique_ptr<Partition>> try_open() {
    return Partition::open(files, clock, directory, options);
  }
  std::unique_ptr<Partition> open() { return try_open().value(); }
  std::string path(const std::string& name) const { return directory + "/" + name; }
  std::string segment(std::int64_t base_offset) const {
    return segment_path(directory, base_offset);
  }
};

inline Stamp after(Stamp stamp, std::uint64_t count) {
  stamp.sequence += count;
  return stamp;
}

// Messages "m<begin>" to "m<end - 1>".
inline std::vector<Message> texts(int begin, int end) {
  std::vector<Message> messages;
  for (int i = begin; i < end; ++i)
    messages.push_back({.id = fmt::format("id{}", i), .body = fmt::format("m{}", i)});
  return messages;
}
inline std::vector<std::string> bodies(int begin, int end) {
  std::vector<std::string> result;
  for (const Message& message : texts(begin, end)) result.push_back(*message.body);
  return result;
}

inline Result<Receipt> append(Partition& partition, const Stamp& stamp,
                              const std::vector<Message>& messages) {
  const Ticket ticket = ONCE_TRY(partition.stage(stamp, messages));
  ONCE_TRY(partition.sync());
  return partition.outcome(ticket);
}

inline Result<std::vector<std::string>> try_read_all(Partition& partition,
                                                     std::size_t bytes_max = 1 << 20) {
  std::vector<std::string> result;
  std::int64_t offset = partition.first_offset();
  while (offset < partition.end_offset()) {
    const ReadResult read = ONCE_TRY(partition.read(offset, bytes_max));
    for (const Delivery& delivery : read.deliveries) {
      if (delivery.offset != offset++) return fail(Remedy::stop, "order", "offsets are not dense");
      result.emplace_back(delivery.body);
    }
    if (read.end_offset != offset) return fail(Remedy::stop, "order", "wrong end");
  }
  return result;
}
inline std::vector<std::string> read_all(Partition& partition) {
  return try_read_all(partition).value();
}

}  // namespace once::log
