// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/state.h"

#include "base/url.h"
#include "store/postgres/connection.h"
#include "store/postgres/postgres.h"
#include "store/postgres/schema.h"

namespace once {

Result<StoreState> postgres_store_state(const std::string& url) {
  if (scheme_bytes(url) != 0) ONCE_TRY(parse_url(url));
  const auto connection = ONCE_TRY(PgConnection::open(url, shown_url(url)));
  const auto table =
      ONCE_TRY(connection->ask("SELECT count(*) FROM pg_class WHERE relname = 'once_schema' AND "
                               "pg_table_is_visible(oid)"));
  if (table->number(0, 0) == 0) {
    ONCE_TRY(check_no_foreign_tables(*connection, shown_url(url)));
    return StoreState::none;
  }
  const auto version = ONCE_TRY(connection->ask("SELECT max(version) FROM once_schema"));
  return store_state(static_cast<std::size_t>(version->number(0, 0)), postgres_schema_steps.size());
}

Result<std::unique_ptr<Store>> open_postgres_store_to_look(const std::string& url) {
  return PostgresStore::open(url, {.makes_tables = false});
}

}  // namespace once
