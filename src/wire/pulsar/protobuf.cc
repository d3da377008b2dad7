// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/protobuf.h"

namespace once::pulsar {
namespace {

enum WireType : std::uint64_t { varint_type = 0, fixed64 = 1, with_length = 2, fixed32 = 5 };

}  // namespace

void ProtoWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>((value & 0x7f) | 0x80);
  text_ += static_cast<char>(value);
}

ProtoWriter& ProtoWriter::number(std::uint32_t field, std::uint64_t value) {
  varint(std::uint64_t{field} << 3 | varint_type);
  varint(value);
  return *this;
}

ProtoWriter& ProtoWriter::bytes(std::uint32_t field, std::string_view value) {
  varint(std::uint64_t{field} << 3 | with_length);
  varint(value.size());
  text_ += value;
  return *this;
}

std::optional<std::uint64_t> ProtoReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  is_damaged_ = true;
  return std::nullopt;
}

bool ProtoReader::skip(std::size_t size) {
  if (size > rest_.size()) {
    is_damaged_ = true;
    return false;
  }
  rest_.remove_prefix(size);
  return true;
}

std::optional<ProtoField> ProtoReader::next() {
  while (!is_damaged_ && !rest_.empty()) {
    const auto head = varint();
    if (!head) break;
    ProtoField field;
    field.number = static_cast<std::uint32_t>(*head >> 3);
    switch (*head & 7) {
      case varint_type: {
        const auto value = varint();
        if (!value) return std::nullopt;
        field.value = *value;
        return field;
      }
      case with_length: {
        const auto size = varint();
        if (!size) return std::nullopt;
        const std::string_view bytes = rest_.substr(0, *size);
        if (!skip(*size)) return std::nullopt;
        field.is_bytes = true;
        field.bytes = bytes;
        return field;
      }
      // Pulsar has no such fields that we read.
      case fixed64: (void)skip(8); break;
      case fixed32: (void)skip(4); break;
      default: is_damaged_ = true;
    }
  }
  return std::nullopt;
}

}  // namespace once::pulsar
