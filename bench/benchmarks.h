// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "harness.h"

namespace once::bench {

// Each measures its comparisons and writes one file of results.
void bench_pipeline(const Settings& settings);
void bench_log(const Settings& settings);
void bench_growth(const Settings& settings);
void bench_servers(const Settings& settings);
void bench_servers_growth(const Settings& settings);
void bench_kafka(const Settings& settings);   // only where Kafka and the binary are built
void bench_claims(const Settings& settings);  // only where the Redis store is built

}  // namespace once::bench
