// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/state.h"

#include "store/mysql/connection.h"
#include "store/mysql/mysql.h"
#include "store/mysql/schema.h"

namespace once {

Result<StoreState> mysql_store_state(const std::string& url) {
  const MysqlAddress address = ONCE_TRY(MysqlAddress::parse(url));
  const auto connection = ONCE_TRY(MysqlConnection::open(address));
  const auto table =
      ONCE_TRY(connection->ask("SELECT count(*) FROM information_schema.tables "
                               "WHERE table_schema = database() AND table_name = 'once_schema'"));
  if (table->number(0, 0) == 0) {
    ONCE_TRY(check_no_foreign_tables(*connection, address.where()));
    return StoreState::none;
  }
  const auto version =
      ONCE_TRY(connection->ask("SELECT coalesce(max(version), 0) FROM once_schema"));
  return store_state(static_cast<std::size_t>(version->number(0, 0)), mysql_schema_steps.size());
}

Result<std::unique_ptr<Store>> open_mysql_store_to_look(const std::string& url) {
  return MysqlStore::open(url, {.makes_tables = false});
}

}  // namespace once
