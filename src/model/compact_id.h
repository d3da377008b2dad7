// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace once {

// How ledgers keep ids. Many ids are UUIDs in text, and a ledger with ids in no order is as fast as
// its rows are narrow: so a lower-case UUID of 36 characters is kept in 17 bytes. Every other id is
// kept as it is. Injective; ids of one kind keep their order.
class CompactId {
 public:
  // The id must outlive this object.
  explicit CompactId(std::string_view id);
  CompactId(const CompactId&) = delete;
  CompactId& operator=(const CompactId&) = delete;

  std::string_view bytes() const { return bytes_; }

 private:
  static constexpr std::size_t uuid_bytes = 17;

  std::array<char, uuid_bytes> uuid_;
  std::string escaped_;
  std::string_view bytes_;
};

// The id that was kept as these bytes.
std::string expand_id(std::string_view bytes);

}  // namespace once
