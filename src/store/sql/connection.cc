// SPDX-License-Identifier: Apache-2.0
#include "store/sql/connection.h"

#include <fmt/format.h>

namespace once {

Error SqlConnection::transaction_lost(std::string_view where, std::string_view statement) {
  return {Remedy::stop, "transaction_lost",
          fmt::format("{}: \"{}\" ended the transaction: what was written before it may be "
                      "committed, what follows does not belong to it, and nothing of the batch "
                      "counts as applied. Statements that change the schema, LOCK TABLES, COMMIT "
                      "and procedures that use them do this; take them out of the handler, then "
                      "compare your tables with `once ledger ls`",
                      where, shortened(statement)),
          std::nullopt};
}

std::int64_t SqlAnswer::number(int row, int column) const {
  return number_in<std::int64_t>(bytes(row, column));
}

Result<std::unique_ptr<SqlAnswer>> SqlSession::ask(std::string_view statement,
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
