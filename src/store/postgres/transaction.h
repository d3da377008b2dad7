// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/sql/transaction.h"

namespace once {

class PostgresTransaction final : public ServerTransaction {
 public:
  using ServerTransaction::ServerTransaction;

 private:
  Status record_ids(Admission& admission) override;
  Status look_up(std::span<Admission::Known* const> unseen);
};

}  // namespace once
