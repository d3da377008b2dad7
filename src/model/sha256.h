// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace once {

// SHA-256 over fields, each preceded by its length, so that no two lists of fields give the same
// bytes. Uses a context of its thread: at most one at a time per thread.
class Sha256 {
 public:
  explicit Sha256(std::string_view purpose);
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void field(std::string_view bytes);
  // The first 128 bits.
  std::array<std::uint8_t, 16> digest128();
};

std::string to_hex(const std::array<std::uint8_t, 16>& bytes);

}  // namespace once
