// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "store/sql/transaction.h"

namespace once {

// Milliseconds by the server's clock, whatever the time zone of the session.
inline constexpr std::string_view mysql_now_ms =
    "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)";

class MysqlTransaction final : public ServerTransaction {
 public:
  // `guards` is the store's: whether its transactions are guarded against procedures that commit.
  MysqlTransaction(ServerStore& store, std::int64_t scope_number, std::string_view scope,
                   ServerStore::Lease lease, std::atomic<bool>& guards)
      : ServerTransaction(store, scope_number, scope, std::move(lease)), guards_(guards) {}

 private:
  // What the server said when this transaction first admitted.
  struct Moment {
    std::int64_t horizon_ms = 0;
    std::int64_t now_ms = 0;
  };

  Status record_ids(Admission& admission) override;
  Status allow(std::string_view statement) override;
  Result<Moment> moment();
  // How many of them were recorded; those born below the horizon are left out.
  Result<std::size_t> insert(Admission& admission, const Moment& moment, std::int64_t token);
  Status look_up(Admission& admission, std::int64_t token);

  std::atomic<bool>& guards_;
  std::optional<Moment> moment_;
};

}  // namespace once
