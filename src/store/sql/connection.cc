// SPDX-License-Identifier: Apache-2.0
#include "store/sql/connection.h"

namespace once {

std::int64_t SqlAnswer::number(int row, int column) const {
  return number_in<std::int64_t>(bytes(row, column));
}

Result<std::unique_ptr<SqlAnswer>> SqlConnection::ask(std::string_view statement,
                                                      std::span<const Value> values) {
  std::unique_ptr<SqlAnswer> kept;
  const auto keep = [&](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
    if (!answer) return fail(std::move(answer).error());
    kept = std::move(*answer);
    return {};
  };
  ONCE_TRY(send(statement, values, keep, SqlStage::statement));
  ONCE_TRY(sync());
  return kept;
}

}  // namespace once
