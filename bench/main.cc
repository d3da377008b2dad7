// SPDX-License-Identifier: Apache-2.0
// Once beside its peers; `bench/run` calls this for each benchmark and prints the table.
#include <CLI/CLI.hpp>

#include <cstdio>

#include "benchmarks.h"

int main(int argc, char** argv) {
  once::bench::Settings settings;
  settings.directory = ".";
  settings.results = "results";
  CLI::App app{"Measures Once beside its peers, in alternating rounds."};
  app.add_option("--dir", settings.directory, "where the measured files live")
      ->capture_default_str();
  app.add_option("--results", settings.results, "where the JSON goes")->capture_default_str();
  app.add_option("--rounds", settings.rounds, "rounds per comparison")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--quick", settings.quick, "tiny sizes and one round: only shows that it runs");
  app.add_subcommand("pipeline", "SQLite pipeline, the per-message recipe, raw SQLite")
      ->callback([&] { once::bench::bench_pipeline(settings); });
  app.add_subcommand("log", "appends with producer dedup, raw group-committed appends")
      ->callback([&] { once::bench::bench_log(settings); });
  app.add_subcommand("growth", "the cost of a message in a small and in a large ledger and log")
      ->callback([&] { once::bench::bench_growth(settings); });
  app.add_subcommand("servers", "PostgreSQL and MariaDB: pipelines, the recipe, set-based SQL")
      ->callback([&] { once::bench::bench_servers(settings); });
  app.add_subcommand("servers_growth", "the same with a small and with a large ledger, forgetting")
      ->callback([&] { once::bench::bench_servers_growth(settings); });
  app.add_subcommand("claims", "claims on Redis, SET NX")->callback([&] {
#ifdef ONCE_WITH_REDIS
    once::bench::bench_claims(settings);
#else
    std::puts("skipped: claims, since the Redis store was not built");
#endif
  });
  app.add_subcommand("kafka", "once run from Kafka, consumers by hand, librdkafka")->callback([&] {
#ifdef ONCE_WITH_KAFKA
    once::bench::bench_kafka(settings);
#else
    std::puts("skipped: kafka, since the source or the binary was not built");
#endif
  });
  app.require_subcommand(1);
  app.parse_complete_callback([&] {
    if (!settings.quick) return;
    settings.rounds = 1;
    settings.warm_up_rounds = 0;
  });
  CLI11_PARSE(app, argc, argv);
  return 0;
}
