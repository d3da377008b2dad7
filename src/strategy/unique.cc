// SPDX-License-Identifier: Apache-2.0
#include "strategy/guarded_row.h"

namespace once {

Result<UniqueAnswer> unique(Transaction& transaction, std::string_view table, Columns key,
                            Columns rest) {
  const auto row = ONCE_TRY(guarded_row(transaction, table, key));
  return ONCE_TRY(row->insert(rest)) ? UniqueAnswer::inserted : UniqueAnswer::present;
}

}  // namespace once
