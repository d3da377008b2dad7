// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/identity.h>
#include <once/message.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "audit/sighting.h"
#include "log/interval_set.h"

namespace once::audit {

struct MessagePlace {
  std::string partition;
  std::int64_t offset = 0;
};

// An id that was seen twice, and where.
struct Doubled {
  MessagePlace first;
  MessagePlace second;
};

// Sequences of a producer that are not there, between some that are.
struct Gap {
  std::string partition;
  std::uint64_t producer = 0;
  log::Interval missing;
};

struct AuditReport {
  std::uint64_t messages = 0;
  std::uint64_t without_id = 0;  // by the rule
  std::uint64_t duplicated_ids = 0;
  std::uint64_t surplus = 0;   // messages that repeat an id
  std::uint64_t repeated = 0;  // sequences of producers that were seen again
  std::uint64_t gaps = 0;
  std::uint64_t missing = 0;          // sequences in these gaps
  std::vector<Doubled> doubled = {};  // the first of them ...
  std::vector<Gap> gap_list = {};     // ... and of these
  bool id_is_expected = false;        // the rule was asked for

  // A rule that finds an id in no message is not one of this topic: nothing was compared.
  bool rule_fits() const { return !id_is_expected || messages == 0 || without_id < messages; }
  bool is_clean() const { return surplus == 0 && repeated == 0 && gaps == 0 && rule_fits(); }
};

struct AuditOptions {
  IdRule id;
  bool id_is_expected = false;     // a person asked for the rule: it has to fit
  std::string directory = "/tmp";  // for what does not fit into memory
  std::size_t bytes_max = 64 << 20;
  std::size_t shown_max = 10;
};

// Counts what is in a topic: ids that are there twice, and holes in the sequences of producers. Its
// memory does not grow with the messages, but with the holes.
class StreamAudit {
 public:
  explicit StreamAudit(AuditOptions options);

  [[nodiscard]] Status take(const Delivery& delivery);
  [[nodiscard]] Result<AuditReport> finish();

 private:
  std::uint32_t number_of(std::string_view partition);
  Status take_sequence(const Delivery& delivery);
  void find_gaps();

  const AuditOptions options_;
  SightingSorter sorter_;
  AuditReport report_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<std::string> partitions_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, log::IntervalSet> sequences_;
  std::size_t holes_ = 0;
};

// What an id is known by in an audit.
[[nodiscard]] std::array<std::uint8_t, 16> digest_of_id(std::string_view id);

}  // namespace once::audit
