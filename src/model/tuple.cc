// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/identity.h>

// Parts are joined by `|`. Inside a part `|` and `\` are preceded by `\`, and a part without any
// byte is `\e`. So every list of parts has exactly one text and every text at most one list, and
// ordinary ids stay readable: ("order", "100") is `order|100`.

namespace once {
namespace {

constexpr char separator = '|';
constexpr char escape = '\\';
constexpr char empty_mark = 'e';

tl::unexpected<Error> not_a_tuple(std::size_t at) {
  return fail(Remedy::park, "tuple", fmt::format("not an encoded tuple: bad byte at {}", at));
}

}  // namespace

std::string encode_tuple(std::span<const std::string_view> parts) {
  std::size_t bytes = 0;
  for (const std::string_view part : parts) bytes += part.size() + 2;
  std::string encoded;
  encoded.reserve(bytes);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) encoded.push_back(separator);
    if (parts[i].empty()) {
      encoded.push_back(escape);
      encoded.push_back(empty_mark);
    }
    for (const char byte : parts[i]) {
      if (byte == separator || byte == escape) encoded.push_back(escape);
      encoded.push_back(byte);
    }
  }
  return encoded;
}

Result<std::vector<std::string>> decode_tuple(std::string_view encoded) {
  std::vector<std::string> parts;
  if (encoded.empty()) return parts;
  std::string part;
  bool marked_empty = false;
  const auto finish = [&] {
    const bool valid = part.empty() == marked_empty;
    parts.push_back(std::move(part));
    part.clear();
    marked_empty = false;
    return valid;
  };
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    if (encoded[i] == separator) {
      if (!finish()) return not_a_tuple(i);
      continue;
    }
    if (marked_empty) return not_a_tuple(i);  // only a separator may follow `\e`
    if (encoded[i] != escape) {
      part.push_back(encoded[i]);
      continue;
    }
    if (++i == encoded.size()) return not_a_tuple(i - 1);
    if (encoded[i] == separator || encoded[i] == escape)
      part.push_back(encoded[i]);
    else if (encoded[i] == empty_mark && part.empty())
      marked_empty = true;
    else
      return not_a_tuple(i);
  }
  if (!finish()) return not_a_tuple(encoded.size());
  return parts;
}

}  // namespace once
