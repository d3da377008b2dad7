// SPDX-License-Identifier: Apache-2.0
#include "open/adapters.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/url.h"
#include "log/adapter.h"
#include "store/memory/adapter.h"
#include "store/sqlite/adapter.h"
#include "wire/mqtt/adapter.h"
#ifdef ONCE_WITH_KAFKA
#include "wire/kafka/adapter.h"
#endif
#ifdef ONCE_WITH_RABBITMQ
#include "wire/rabbitmq/adapter.h"
#endif
#ifdef ONCE_WITH_PULSAR
#include "wire/pulsar/adapter.h"
#endif
#ifdef ONCE_WITH_POSTGRES
#include "store/postgres/adapter.h"
#endif
#ifdef ONCE_WITH_MYSQL
#include "store/mysql/adapter.h"
#endif
#ifdef ONCE_WITH_REDIS
#include "store/redis/adapter.h"
#endif

namespace once {

// The only list of them. Errors name the schemes in this order.
std::span<const Adapter* const> adapters() {
  static const std::array all = std::to_array<const Adapter*>({
      &log_adapter(),
#ifdef ONCE_WITH_KAFKA
      &kafka::adapter(),
#endif
#ifdef ONCE_WITH_RABBITMQ
      &rabbitmq::adapter(),
#endif
      &mqtt::adapter(),
#ifdef ONCE_WITH_PULSAR
      &pulsar::adapter(),
#endif
      &sqlite_adapter(),
      &memory_adapter(),
#ifdef ONCE_WITH_POSTGRES
      &postgres_adapter(),
#endif
#ifdef ONCE_WITH_MYSQL
      &mysql_adapter(),
#endif
#ifdef ONCE_WITH_REDIS
      &redis_adapter(),
#endif
  });
  return all;
}

const Adapter* adapter_of_scheme(std::string_view scheme) {
  for (const Adapter* adapter : adapters())
    if (std::find(adapter->schemes.begin(), adapter->schemes.end(), scheme) !=
        adapter->schemes.end())
      return adapter;
  return nullptr;
}

Result<const Adapter*> adapter_of(std::string_view text, std::string_view purpose, Ability can) {
  const Url url = ONCE_TRY(parse_url(text, purpose == "store" ? "sqlite" : "file"));
  if (const Adapter* adapter = adapter_of_scheme(url.scheme); adapter != nullptr && can(*adapter))
    return adapter;
  std::vector<std::string_view> known;
  for (const Adapter* adapter : adapters())
    if (can(*adapter)) known.insert(known.end(), adapter->schemes.begin(), adapter->schemes.end());
  // Refused: it is none of them.
  ONCE_TRY(require_scheme(url, known, purpose));
  return nullptr;
}

}  // namespace once
