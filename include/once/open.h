// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sink.h>
#include <once/source.h>
#include <once/store.h>

#include <memory>
#include <string_view>

namespace once {

// Everything is opened from one URL, so that a pipeline moves from the embedded default to a
// cluster by changing a string:
//
//   file:DIR/TOPIC        the embedded log           (source, sink; ?end=stop bounds a source)
//   kafka://HOST:PORT/TOPIC   a topic of Kafka     (source with ?group=..., sink)
//   mqtt://HOST:PORT/TOPIC    a topic of MQTT, or a filter of them (source with ?client=..., sink)
//   pulsar://HOST:PORT/TOPIC  a topic of Pulsar   (source with ?subscription=..., sink)
//   sqlite:PATH           an SQLite database         (store)
//   postgresql://...      a PostgreSQL database, as libpq takes it (store)
//   mysql://...           a MySQL or MariaDB database (store)
//   redis://...           a Redis server or cluster  (store)
//   memory:               this process's memory      (store, for tests)
//
// An unknown scheme or parameter is an error that lists the known ones.
[[nodiscard]] Result<std::unique_ptr<Source>> open_source(std::string_view url);
[[nodiscard]] Result<std::unique_ptr<Sink>> open_sink(std::string_view url);
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(std::string_view url);

// What a destination promises (see `verify`), without opening it or talking to it.
[[nodiscard]] Result<SinkTraits> sink_traits_of(std::string_view url);

// The single adapters, for programs that link only some of them.
[[nodiscard]] Result<std::unique_ptr<Source>> open_kafka_source(std::string_view url);
[[nodiscard]] Result<std::unique_ptr<Sink>> open_kafka_sink(std::string_view url);
[[nodiscard]] Result<SinkTraits> kafka_sink_traits(std::string_view url);
[[nodiscard]] Result<std::unique_ptr<Source>> open_pulsar_source(std::string_view url);
[[nodiscard]] Result<std::unique_ptr<Sink>> open_pulsar_sink(std::string_view url);
[[nodiscard]] Result<SinkTraits> pulsar_sink_traits(std::string_view url);
[[nodiscard]] Result<std::unique_ptr<Store>> open_memory_store();
[[nodiscard]] Result<std::unique_ptr<Store>> open_sqlite_store(std::string_view path);
[[nodiscard]] Result<std::unique_ptr<Store>> open_postgresql_store(std::string_view url);
[[nodiscard]] Result<std::unique_ptr<Store>> open_mysql_store(std::string_view url);
[[nodiscard]] Result<std::unique_ptr<Store>> open_redis_store(std::string_view url);

}  // namespace once
