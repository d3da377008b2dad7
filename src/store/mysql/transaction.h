// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "store/sql/transaction.h"

namespace once {

class MysqlTransaction final : public ServerTransaction {
 public:
  using ServerTransaction::ServerTransaction;

 private:
  Status record_ids(Admission& admission) override;
  Result<std::int64_t> horizon_ms();
  Status insert(Admission& admission, std::int64_t horizon_ms, std::int64_t token);
  Status look_up(Admission& admission, std::int64_t token);

  std::optional<std::int64_t> horizon_ms_;
};

}  // namespace once
