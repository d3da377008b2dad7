// SPDX-License-Identifier: Apache-2.0
#include "model/compact_id.h"

namespace once {
namespace {

// The first byte tells: a UUID, an id that itself begins with one of these two bytes, or any other
// id, which has no mark.
constexpr char escape_mark = '\x00';
constexpr char uuid_mark = '\x01';

constexpr std::size_t uuid_text_size = 36;
constexpr std::string_view digits = "0123456789abcdef";

constexpr bool is_hyphen_at(std::size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

constexpr auto make_values() {
  std::array<signed char, 256> values{};
  for (signed char& value : values) value = -1;
  for (std::size_t i = 0; i < digits.size(); ++i)
    values[static_cast<unsigned char>(digits[i])] = static_cast<signed char>(i);
  return values;
}
constexpr auto value_of = make_values();

bool pack_uuid(std::string_view text, char* into) {
  if (text.size() != uuid_text_size) return false;
  for (std::size_t i = 0; i < text.size();) {
    if (is_hyphen_at(i)) {
      if (text[i++] != '-') return false;
      continue;
    }
    const int high = value_of[static_cast<unsigned char>(text[i++])];
    const int low = value_of[static_cast<unsigned char>(text[i++])];
    if ((high | low) < 0) return false;
    *into++ = static_cast<char>(high << 4 | low);
  }
  return true;
}

}  // namespace

CompactId::CompactId(std::string_view id) : bytes_(id) {
  if (pack_uuid(id, uuid_.data() + 1)) {
    uuid_[0] = uuid_mark;
    bytes_ = {uuid_.data(), uuid_.size()};
  } else if (!id.empty() && (id[0] == escape_mark || id[0] == uuid_mark)) {
    escaped_ = escape_mark;
    escaped_ += id;
    bytes_ = escaped_;
  }
}

std::string expand_id(std::string_view bytes) {
  if (bytes.empty()) return {};
  if (bytes[0] == escape_mark) return std::string(bytes.substr(1));
  if (bytes[0] != uuid_mark) return std::string(bytes);
  std::string text;
  text.reserve(uuid_text_size);
  for (const char byte : bytes.substr(1)) {
    if (is_hyphen_at(text.size())) text += '-';
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

}  // namespace once
