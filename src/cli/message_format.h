// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace once::cli {

// How a message is written, as kcat has it: %t topic, %p partition, %o offset, %k key, %s body,
// %h headers, %T timestamp in milliseconds, %i id, %K and %S the bytes of key and body (-1: there
// is none), %% a percent sign; \n \r \t \\ and \0 as in C.
class MessageFormat {
 public:
  // An error (tag "usage") names what is not known.
  [[nodiscard]] static Result<MessageFormat> parse(std::string_view text);

  // `shown` is how bytes of the message are written; what the format says itself stays as it is.
  using Shown = std::function<std::string(std::string_view)>;
  [[nodiscard]] std::string text_of(const Delivery& delivery, const Shown& shown) const;

 private:
  struct Piece {
    std::string literal;
    char field = 0;  // comes after the literal; 0: none
  };
  std::vector<Piece> pieces_;
};

}  // namespace once::cli
