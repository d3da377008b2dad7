// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace once::simulation {

// A record as it was read back from a log.
struct Record {
  std::int64_t offset = 0;
  Stamp stamp;  // its own sequence
  Message message;
};

using PartitionName = std::pair<std::string, std::uint32_t>;  // topic and number

// What was asked of the log and what it answered; the judge of everything that is read from it.
// The names of the invariants are those of docs/testing.md.
class History {
 public:
  // A request reached the log. `finished` tells its answer; without one it died with the process.
  void asked(const PartitionName& where, const Stamp& stamp, std::span<const Message> messages);
  void finished(const PartitionName& where, const Stamp& stamp, std::size_t count,
                const Result<Receipt>& answer);
  // A producer was let in: from now on, smaller epochs are fenced.
  void entered(const PartitionName& where, const Stamp& stamp, std::int64_t end_offset);

  // Reads of the whole partition, after every recovery and at the end. `ordered`: gaps are not
  // accepted, so sequences follow each other.
  void check(const PartitionName& where, const std::vector<Record>& records, bool ordered);

  const std::vector<std::string>& violations() const { return violations_; }
  void violate(std::string text) { violations_.push_back(std::move(text)); }
  bool was_acknowledged(const PartitionName& where, const Stamp& stamp) const;

 private:
  struct Token {
    PartitionName where;
    std::uint64_t producer = 0;
    std::uint64_t sequence = 0;
    auto operator<=>(const Token&) const = default;
  };
  struct Fate {
    std::vector<Message> contents;  // all that were ever sent under this token
    bool acknowledged = false;
    std::uint32_t open = 0;              // requests without an answer
    bool maybe = false;                  // some request may have appended it
    std::optional<std::int64_t> offset;  // as told by a receipt
  };
  struct Fence {
    std::uint64_t producer = 0;
    std::uint32_t epoch = 0;
    std::int64_t end_offset = 0;
  };

  void check_record(const PartitionName& where, const Record& record);
  void check_order(const PartitionName& where, const std::vector<Record>& records, bool ordered);
  void check_fences(const PartitionName& where, const std::vector<Record>& records);
  std::string text(const Token& token) const;

  std::map<Token, Fate> fates_;
  std::map<PartitionName, std::vector<Fence>> fences_;
  std::vector<std::string> violations_;
};

}  // namespace once::simulation
