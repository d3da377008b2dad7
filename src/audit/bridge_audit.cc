// SPDX-License-Identifier: Apache-2.0
#include "audit/bridge_audit.h"

#include <array>
#include <cstdint>
#include <filesystem>

#include "audit/read_to_end.h"
#include "audit/sighting.h"
#include "audit/stream_audit.h"
#include "model/sha256.h"

namespace once::audit {
namespace {

constexpr std::size_t bytes_max = 64 << 20;

// Absent and empty are two things.
void hash_part(Sha256& hash, std::string_view part) {
  hash.field(part.data() == nullptr ? "-" : "+");
  hash.field(part);
}

// All that a copy has to keep. The time is not part of it: a topic may set its own.
std::array<std::uint8_t, 16> digest_of(const Delivery& delivery) {
  Sha256 hash("content");
  hash.field(delivery.id);
  hash_part(hash, delivery.key);
  hash_part(hash, delivery.body);
  for (const HeaderView& header : delivery.headers) {
    if (header.name == id_header) continue;
    hash.field(header.name);
    hash_part(hash, header.value);
  }
  return hash.digest128();
}

// How often each id is on each side.
class Comparison {
 public:
  explicit Comparison(bool once_each) : once_each_(once_each) {}

  void take(const Sighting& next) {
    if (next.digest != digest_) finish();
    digest_ = next.digest;
    ++counts_[next.side];
  }

  void finish() {
    const std::uint64_t from = counts_[0];
    const std::uint64_t to = counts_[1];
    counts_ = {};
    if (from == 0 && to == 0) return;
    if (from == 0) {
      report.others += to;
      return;
    }
    const std::uint64_t expected = once_each_ ? 1 : from;
    report.duplicates += from - expected;
    report.copied += std::min(to, expected);
    report.missing += expected > to ? expected - to : 0;
    report.doubled += to > expected ? to - expected : 0;
  }

  BridgeReport report;

 private:
  const bool once_each_;
  std::array<std::uint8_t, 16> digest_{};
  std::array<std::uint64_t, 2> counts_{};
};

}  // namespace

Result<BridgeReport> audit_bridge(const std::string& from, const std::string& to,
                                  const std::optional<IdRule>& id) {
  std::error_code ignored;
  SightingSorter sorter(std::filesystem::temp_directory_path(ignored).string(), bytes_max);
  Comparison found(id.has_value());
  ONCE_TRY(read_to_end(from, [&](const Delivery& delivery) -> Status {
    if (!id) return sorter.add({.digest = digest_of(delivery), .side = 0});
    if (const auto found = id->id_of(delivery))
      return sorter.add({.digest = digest_of_id(*found), .side = 0});
    ++found.report.without_id;
    return {};
  }));
  // With a rule, the copy has the id that the rule made.
  ONCE_TRY(read_to_end(to, [&](const Delivery& delivery) {
    return sorter.add({.digest = id ? digest_of_id(delivery.id) : digest_of(delivery), .side = 1});
  }));
  ONCE_TRY(sorter.visit([&](const Sighting& next) { found.take(next); }));
  found.finish();
  return found.report;
}

}  // namespace once::audit
