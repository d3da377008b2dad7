// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/statement_text.h"

#include <fmt/format.h>

namespace once {

StatementText number_parameters(std::string_view statement) {
  StatementText made;
  made.text.reserve(statement.size() + 16);
  split_sql(statement, postgres_syntax, [&](SqlPiece piece, std::string_view text) {
    switch (piece) {
      case SqlPiece::parameter: made.text += fmt::format("${}", ++made.parameters); break;
      case SqlPiece::question: made.text += '?'; break;
      case SqlPiece::quoted:
      case SqlPiece::unclosed:
      case SqlPiece::word:
      case SqlPiece::other: made.text += text;
    }
  });
  return made;
}

}  // namespace once
