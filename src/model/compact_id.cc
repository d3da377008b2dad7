// SPDX-License-Identifier: Apache-2.0
#include "model/compact_id.h"

#include "base/hex.h"

namespace once {
namespace {

// The first byte tells: a UUID, an id that itself begins with one of these two bytes, or any other
// id, which has no mark.
constexpr char escape_mark = '\x00';
constexpr char uuid_mark = '\x01';

constexpr std::size_t uuid_text_size = 36;

constexpr bool is_hyphen_at(std::size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

// Only small letters: another spelling is another id.
constexpr bool is_capital(char digit) { return digit >= 'A' && digit <= 'F'; }

bool pack_uuid(std::string_view text, char* into) {
  if (text.size() != uuid_text_size) return false;
  for (std::size_t i = 0; i < text.size();) {
    if (is_hyphen_at(i)) {
      if (text[i++] != '-') return false;
      continue;
    }
    const char high = text[i++];
    const char low = text[i++];
    const int byte = hex_byte(high, low);
    if (byte < 0 || is_capital(high) || is_capital(low)) return false;
    *into++ = static_cast<char>(byte);
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
  for (std::size_t i = 1; i < bytes.size(); ++i) {
    if (is_hyphen_at(text.size())) text += '-';
    append_hex(text, bytes.substr(i, 1));
  }
  return text;
}

}  // namespace once
