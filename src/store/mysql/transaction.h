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
  // What the server said when this transaction first admitted.
  struct Moment {
    std::int64_t horizon_ms = 0;
    std::int64_t now_ms = 0;
  };

  Status record_ids(Admission& admission) override;
  Result<Moment> moment();
  // How many of them were recorded; those born below the horizon are left out.
  Result<std::size_t> insert(Admission& admission, const Moment& moment, std::int64_t token);
  Status look_up(Admission& admission, std::int64_t token);

  std::optional<Moment> moment_;
};

}  // namespace once
