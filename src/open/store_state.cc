// SPDX-License-Identifier: Apache-2.0
#include "open/store_state.h"

#include <string>

#include "base/url.h"
#include "store/sqlite/state.h"
#ifdef ONCE_WITH_POSTGRES
#include "store/postgres/state.h"
#endif
#ifdef ONCE_WITH_MYSQL
#include "store/mysql/state.h"
#endif
#ifdef ONCE_WITH_REDIS
#include "store/redis/state.h"
#endif

namespace once {

// What cannot be opened at all is told by `open_store`.
Result<StoreState> store_state_at(std::string_view text) {
  const Url url = ONCE_TRY(parse_url(text));
#ifdef ONCE_WITH_POSTGRES
  if (url.scheme == "postgresql" || url.scheme == "postgres")
    return postgres_store_state(std::string(text));
#endif
#ifdef ONCE_WITH_MYSQL
  if (url.scheme == "mysql" || url.scheme == "mariadb") return mysql_store_state(std::string(text));
#endif
#ifdef ONCE_WITH_REDIS
  if (url.scheme == "redis") return redis_store_state(std::string(text));
#endif
  if (url.scheme == "sqlite" && !url.path.empty()) return sqlite_store_state(url.path);
  return StoreState::current;
}

}  // namespace once
