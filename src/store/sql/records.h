// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/records.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/sql/books.h"

namespace once {

// The columns of a ledger record, and the record in a row of them.
inline constexpr std::string_view record_columns =
    "id, fingerprint, outcome, result, born_ms, recorded_ms, at_offset, "
    "(SELECT name FROM once_name WHERE number = source_partition)";
LedgerRecord ledger_record_in(const SqlAnswer& answer, int row);

class SqlRecords final : public Records {
 public:
  explicit SqlRecords(SqlBooks& books) : books_(books) {}

  Result<std::vector<std::string>> scopes() override;
  Result<std::vector<LedgerRecord>> ledger(std::string_view scope, std::string_view from_id,
                                           std::size_t count_max) override;
  Result<std::vector<ParkedRecord>> parked(std::string_view scope, std::int64_t after_number,
                                           std::size_t count_max) override;
  Result<std::vector<OperationRecord>> operations(std::string_view scope, std::int64_t after_number,
                                                  std::size_t count_max) override;
  Result<ScopeRecord> describe(std::string_view scope) override;

 private:
  SqlBooks& books_;
};

}  // namespace once
