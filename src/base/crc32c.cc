// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace once {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78;  // reflected

// tables[k][b]: the effect of byte b followed by k zero bytes, for eight bytes at a time.
constexpr auto make_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}
constexpr auto tables = make_tables();

std::uint32_t step(std::uint32_t crc, char byte) {
  return (crc >> 8) ^ tables[0][(crc ^ static_cast<std::uint8_t>(byte)) & 0xff];
}

#if defined(__x86_64__)
// The instruction takes three cycles, and one can begin in each: so long inputs are summed in three
// lanes at a time, which are then put together.
constexpr std::ptrdiff_t lane_bytes = 1024;

// lane_shift[k][b]: the effect of byte k of a state, when it is b, after a lane of zero bytes.
constexpr auto make_lane_shift() {
  std::array<std::uint32_t, 32> bits{};  // the sum is linear: the effect of each bit is enough
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::uint32_t crc = std::uint32_t{1} << bit;
    for (std::ptrdiff_t i = 0; i < lane_bytes; ++i) crc = (crc >> 8) ^ tables[0][crc & 0xff];
    bits[bit] = crc;
  }
  std::array<std::array<std::uint32_t, 256>, 4> shift{};
  for (std::size_t k = 0; k < 4; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      for (std::size_t bit = 0; bit < 8; ++bit)
        if ((byte >> bit & 1) != 0) shift[k][byte] ^= bits[8 * k + bit];
  return shift;
}
constexpr auto lane_shift = make_lane_shift();

std::uint64_t shift_by_lane(std::uint64_t crc) {
  return lane_shift[0][crc & 0xff] ^ lane_shift[1][crc >> 8 & 0xff] ^
         lane_shift[2][crc >> 16 & 0xff] ^ lane_shift[3][crc >> 24 & 0xff];
}

std::uint64_t word_at(const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, 8);
  return word;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(std::string_view bytes,
                                                             std::uint32_t crc) {
  std::uint64_t state = ~crc;
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  for (; end - at >= 3 * lane_bytes; at += 3 * lane_bytes) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::ptrdiff_t i = 0; i < lane_bytes; i += 8) {
      state = _mm_crc32_u64(state, word_at(at + i));
      second = _mm_crc32_u64(second, word_at(at + lane_bytes + i));
      third = _mm_crc32_u64(third, word_at(at + 2 * lane_bytes + i));
    }
    state = shift_by_lane(shift_by_lane(state) ^ second) ^ third;
  }
  for (; end - at >= 8; at += 8) state = _mm_crc32_u64(state, word_at(at));
  auto narrow = static_cast<std::uint32_t>(state);
  for (; at != end; ++at) narrow = _mm_crc32_u8(narrow, static_cast<std::uint8_t>(*at));
  return ~narrow;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(std::string_view bytes, std::uint32_t crc) {
  crc = ~crc;
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  for (; end - at >= 8; at += 8) {
    std::array<std::uint8_t, 8> b;
    std::memcpy(b.data(), at, 8);
    const std::uint32_t low = crc ^ (std::uint32_t{b[0]} | std::uint32_t{b[1]} << 8 |
                                     std::uint32_t{b[2]} << 16 | std::uint32_t{b[3]} << 24);
    crc = tables[7][low & 0xff] ^ tables[6][(low >> 8) & 0xff] ^ tables[5][(low >> 16) & 0xff] ^
          tables[4][low >> 24] ^ tables[3][b[4]] ^ tables[2][b[5]] ^ tables[1][b[6]] ^
          tables[0][b[7]];
  }
  for (; at != end; ++at) crc = step(crc, *at);
  return ~crc;
}

std::uint32_t crc32c(std::string_view bytes, std::uint32_t crc) {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("sse4.2") != 0;
  if (fast) return crc32c_sse42(bytes, crc);
#endif
  return crc32c_portable(bytes, crc);
}

}  // namespace once
