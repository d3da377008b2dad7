// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace once::log {

// All numbers of the log are big-endian, like those of the record batches inside it.
template <class T>
void put_number(char* at, T value) {
  static_assert(std::endian::native == std::endian::little);
  if constexpr (sizeof(T) == 2) value = static_cast<T>(__builtin_bswap16(value));
  if constexpr (sizeof(T) == 4) value = static_cast<T>(__builtin_bswap32(value));
  if constexpr (sizeof(T) == 8) value = static_cast<T>(__builtin_bswap64(value));
  std::memcpy(at, &value, sizeof(T));
}
inline void put_u8(char* at, std::uint8_t value) { put_number(at, value); }
inline void put_u16(char* at, std::uint16_t value) { put_number(at, value); }
inline void put_u32(char* at, std::uint32_t value) { put_number(at, value); }
inline void put_u64(char* at, std::uint64_t value) { put_number(at, value); }
inline void put_i64(char* at, std::int64_t value) {
  put_number(at, static_cast<std::uint64_t>(value));
}

template <class T>
T get_number(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  if constexpr (sizeof(T) == 2) value = static_cast<T>(__builtin_bswap16(value));
  if constexpr (sizeof(T) == 4) value = static_cast<T>(__builtin_bswap32(value));
  if constexpr (sizeof(T) == 8) value = static_cast<T>(__builtin_bswap64(value));
  return value;
}
inline std::uint8_t get_u8(const char* at) { return get_number<std::uint8_t>(at); }
inline std::uint16_t get_u16(const char* at) { return get_number<std::uint16_t>(at); }
inline std::uint32_t get_u32(const char* at) { return get_number<std::uint32_t>(at); }
inline std::uint64_t get_u64(const char* at) { return get_number<std::uint64_t>(at); }
inline std::int64_t get_i64(const char* at) {
  return static_cast<std::int64_t>(get_number<std::uint64_t>(at));
}

// Zigzag varints as in Kafka's records: small numbers of either sign take one byte.
constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}
constexpr std::size_t varint_bytes(std::int64_t value) {
  const auto bits = static_cast<std::size_t>(std::bit_width(zigzag(value) | 1));
  return (bits + 6) / 7;
}
inline char* put_varint(char* at, std::int64_t value) {
  std::uint64_t rest = zigzag(value);
  while (rest >= 0x80) {
    *at++ = static_cast<char>(rest | 0x80);
    rest >>= 7;
  }
  *at++ = static_cast<char>(rest);
  return at;
}
inline char* put_bytes(char* at, std::string_view bytes) {
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  return at + bytes.size();
}

// Reads numbers and bytes from a view and never beyond its end. The first thing that does not fit
// makes it fail for good: read all, then ask `ok` once. What a failed reader answers is zero.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  std::size_t left() const { return rest_.size(); }

  std::string_view bytes(std::size_t count) {
    if (count > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  std::int64_t i64() { return static_cast<std::int64_t>(u64()); }

  std::int64_t varlong() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      if (shift == 63 && byte > 1) break;
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return unzigzag(value);
    }
    fail();
    return 0;
  }
  std::int32_t varint() {
    const std::int64_t value = varlong();
    if (value < INT32_MIN || value > INT32_MAX) fail();
    return ok_ ? static_cast<std::int32_t>(value) : 0;
  }

 private:
  template <class T>
  T number() {
    const std::string_view taken = bytes(sizeof(T));
    return taken.empty() ? T{0} : get_number<T>(taken.data());
  }
  void fail() {
    ok_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  bool ok_ = true;
};

// Bytes that grow without being set to zero first. Emptied, it keeps its memory.
class Buffer {
 public:
  // Room for `count` more bytes, which the caller fills; `shrink_to` gives back what it did not.
  char* grow(std::size_t count) {
    if (size_ + count > capacity_) enlarge(size_ + count);
    char* at = data_.get() + size_;
    size_ += count;
    return at;
  }
  void append(std::string_view bytes) { put_bytes(grow(bytes.size()), bytes); }
  void shrink_to(std::size_t size) { size_ = size; }
  void clear() { size_ = 0; }
  char* at(std::size_t position) { return data_.get() + position; }
  std::size_t size() const { return size_; }
  std::string_view view() const { return {data_.get(), size_}; }
  std::string_view view(std::size_t from, std::size_t count) const {
    return {data_.get() + from, count};
  }

 private:
  void enlarge(std::size_t least) {
    std::size_t capacity = capacity_ < 4096 ? 4096 : capacity_;
    while (capacity < least) capacity *= 2;
    auto data = std::make_unique_for_overwrite<char[]>(capacity);
    if (size_ > 0) std::memcpy(data.get(), data_.get(), size_);
    data_ = std::move(data);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace once::log
