// SPDX-License-Identifier: Apache-2.0
#include "open/store_state.h"

#include <once/open.h>

#include <string>

#include "base/url.h"
#include "open/look.h"
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

namespace {

// Of a URL whose store is not made.
Result<std::unique_ptr<Store>> open_unmade(std::string_view text) {
  const Url url = ONCE_TRY(parse_url(text));
#ifdef ONCE_WITH_POSTGRES
  if (url.scheme == "postgresql" || url.scheme == "postgres")
    return open_postgres_store_to_look(std::string(text));
#endif
#ifdef ONCE_WITH_MYSQL
  if (url.scheme == "mysql" || url.scheme == "mariadb")
    return open_mysql_store_to_look(std::string(text));
#endif
#ifdef ONCE_WITH_REDIS
  if (url.scheme == "redis") return open_redis_store_to_look(std::string(text));
#endif
  return open_sqlite_store_to_look(url.path);
}

}  // namespace

Result<LookedAtStore> open_store_to_look(std::string_view text) {
  LookedAtStore looked;
  looked.state = ONCE_TRY(store_state_at(text));
  looked.store =
      ONCE_TRY(looked.state == StoreState::current ? open_store(text) : open_unmade(text));
  return looked;
}

}  // namespace once
