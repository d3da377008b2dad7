// SPDX-License-Identifier: Apache-2.0
#include "cli/message_format.h"

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "operate/message_json.h"

namespace once::cli {
namespace {

constexpr std::string_view fields = "tpokshTiKS";

Result<char> escaped(char c) {
  switch (c) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case '0': return '\0';
    case '\\': return '\\';
    default: return fail_usage(fmt::format("--format has no \\{}; known: \\n \\r \\t \\0 \\\\", c));
  }
}

std::string size_of(std::string_view part) {
  return part.data() == nullptr ? "-1" : fmt::format("{}", part.size());
}

std::string headers_of(const Delivery& delivery, const MessageFormat::Shown& shown) {
  std::string text;
  for (const HeaderView& header : delivery.headers) {
    if (!text.empty()) text += ',';
    text += shown(header.name) + "=" + shown(header.value);
  }
  return text;
}

std::string field_of(const Delivery& delivery, char field, const MessageFormat::Shown& shown) {
  const std::string_view number = operate::partition_number(delivery.partition);
  switch (field) {
    case 't':
      return shown(delivery.partition.substr(
          0, delivery.partition.size() - number.size() - (number == delivery.partition ? 0 : 1)));
    case 'p': return shown(number);
    case 'o': return fmt::format("{}", delivery.offset);
    case 'k': return shown(delivery.key);
    case 's': return shown(delivery.body);
    case 'h': return headers_of(delivery, shown);
    case 'T': return fmt::format("{}", delivery.timestamp_ms);
    case 'i': return shown(delivery.id);
    case 'K': return size_of(delivery.key);
    case 'S': return size_of(delivery.body);
    default: return {};
  }
}

}  // namespace

Result<MessageFormat> MessageFormat::parse(std::string_view text) {
  MessageFormat format;
  Piece piece;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool has_next = i + 1 < text.size();
    if (text[i] == '\\' && has_next) {
      piece.literal += ONCE_TRY(escaped(text[++i]));
    } else if (text[i] == '%' && has_next && text[i + 1] == '%') {
      piece.literal += text[++i];
    } else if (text[i] == '%') {
      if (!has_next || fields.find(text[i + 1]) == std::string_view::npos)
        return fail_usage(
            fmt::format("--format has no %{}; known: %t %p %o %k %s %h %T %i %K %S %%",
                        has_next ? text.substr(i + 1, 1) : ""));
      piece.field = text[++i];
      format.pieces_.push_back(std::exchange(piece, {}));
    } else {
      piece.literal += text[i];
    }
  }
  format.pieces_.push_back(std::move(piece));
  return format;
}

std::string MessageFormat::text_of(const Delivery& delivery, const Shown& shown) const {
  std::string text;
  for (const Piece& piece : pieces_) text += piece.literal + field_of(delivery, piece.field, shown);
  return text;
}

}  // namespace once::cli
