// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace once::pulsar {

// Protocol Buffers on the wire, as much of it as Pulsar's commands use.

class ProtoWriter {
 public:
  ProtoWriter& number(std::uint32_t field, std::uint64_t value);
  ProtoWriter& flag(std::uint32_t field, bool value) { return number(field, value ? 1 : 0); }
  ProtoWriter& bytes(std::uint32_t field, std::string_view value);
  ProtoWriter& message(std::uint32_t field, const ProtoWriter& inner) {
    return bytes(field, inner.text_);
  }
  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value);
  std::string text_;
};

struct ProtoField {
  std::uint32_t number = 0;
  bool is_bytes = false;        // else a number
  std::uint64_t value = 0;      // of a number
  std::string_view bytes = {};  // a view into what is read

  std::int64_t signed_value() const { return static_cast<std::int64_t>(value); }
};

// The fields of one message in their order. Reads nothing behind its end, and allocates nothing.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view text) : rest_(text) {}

  // Unset at the end, and where the text is damaged.
  std::optional<ProtoField> next();
  bool is_damaged() const { return is_damaged_; }

 private:
  std::optional<std::uint64_t> varint();
  bool skip(std::size_t size);

  std::string_view rest_;
  bool is_damaged_ = false;
};

}  // namespace once::pulsar
