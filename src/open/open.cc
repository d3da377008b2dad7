// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/log.h>
#include <once/open.h>

#include <array>

#include "open/log_address.h"
#include "open/look.h"
#ifdef ONCE_WITH_KAFKA
#include "wire/kafka/look.h"
#endif

namespace once {
namespace {

constexpr std::array stream_schemes = std::to_array<std::string_view>({
    "file",
#ifdef ONCE_WITH_KAFKA
    "kafka",
#endif
});
constexpr std::array store_schemes = std::to_array<std::string_view>({
    "sqlite",
    "memory",
#ifdef ONCE_WITH_POSTGRES
    "postgresql",
    "postgres",
#endif
#ifdef ONCE_WITH_MYSQL
    "mysql",
    "mariadb",
#endif
#ifdef ONCE_WITH_REDIS
    "redis",
#endif
});
constexpr std::array<std::string_view, 1> source_parameters{"end"};

}  // namespace

Result<std::unique_ptr<Source>> open_source(std::string_view text) {
  const Url url = ONCE_TRY(parse_url(text));
  ONCE_TRY(require_scheme(url, stream_schemes, "source"));
#ifdef ONCE_WITH_KAFKA
  if (url.scheme == "kafka") return open_kafka_source(text);
#endif
  ONCE_TRY(require_parameters(url, source_parameters));
  const LogAddress address = ONCE_TRY(log_address_of(url));
  LogSourceOptions options;
  if (const std::string* end = url.parameter("end")) {
    if (*end != "stop" && *end != "wait")
      return fail(
          Remedy::stop, "url",
          fmt::format("\"{}\": end is \"{}\", but must be stop or wait", shown_url(text), *end));
    options.stop_at_end = *end == "stop";
  }
  return open_log_source(address.directory, address.topic, options);
}

// A reader of the embedded log disturbs nobody.
Result<std::unique_ptr<Source>> open_source_to_look(std::string_view text) {
#ifdef ONCE_WITH_KAFKA
  if (ONCE_TRY(parse_url(text)).scheme == "kafka") return kafka::open_source_to_look(text);
#endif
  return open_source(text);
}

Result<std::unique_ptr<Sink>> open_sink(std::string_view text) {
  const Url url = ONCE_TRY(parse_url(text));
  ONCE_TRY(require_scheme(url, stream_schemes, "sink"));
#ifdef ONCE_WITH_KAFKA
  if (url.scheme == "kafka") return open_kafka_sink(text);
#endif
  ONCE_TRY(require_parameters(url, {}));
  const LogAddress address = ONCE_TRY(log_address_of(url));
  return open_log_sink(address.directory, address.topic);
}

Result<std::unique_ptr<Store>> open_store(std::string_view text) {
  const Url url = ONCE_TRY(parse_url(text));
  ONCE_TRY(require_scheme(url, store_schemes, "store"));
#ifdef ONCE_WITH_POSTGRES
  // Its parameters are libpq's.
  if (url.scheme == "postgresql" || url.scheme == "postgres") return open_postgresql_store(text);
#endif
#ifdef ONCE_WITH_MYSQL
  if (url.scheme == "mysql" || url.scheme == "mariadb") return open_mysql_store(text);
#endif
#ifdef ONCE_WITH_REDIS
  if (url.scheme == "redis") return open_redis_store(text);
#endif
  ONCE_TRY(require_parameters(url, {}));
  if (url.scheme == "memory") {
    if (!url.path.empty())
      return fail(
          Remedy::stop, "url",
          fmt::format("\"{}\" has a path, but memory is not kept anywhere; write memory: or "
                      "sqlite:{}",
                      shown_url(text), url.path));
    return open_memory_store();
  }
  if (url.path.empty() || url.path.ends_with('/'))
    return fail(Remedy::stop, "url",
                fmt::format("\"{}\" names no database file; write sqlite:PATH", shown_url(text)));
  return open_sqlite_store(url.path);
}

}  // namespace once
