// SPDX-License-Identifier: Apache-2.0
// What a message costs when a little is remembered and when a lot is: ledger rows, log records.
#include <fmt/format.h>
#include <once/log.h>

#include "benchmarks.h"
#include "ledger_load.h"
#include "load.h"

namespace once::bench {
namespace {

constexpr std::size_t batch = 1000;
constexpr double aim = 1.5;
constexpr std::size_t batches_per_seek = 20;

double us_per_message(double seconds, std::size_t count) {
  return seconds * 1e6 / static_cast<double>(count);
}

std::string name_of(std::string_view what, std::size_t large, std::size_t small,
                    std::string_view unit) {
  return fmt::format("{}, {} against {} {} (lower is better), us/message", what, large, small,
                     unit);
}

Comparison compare_ledgers(const Settings& settings, IdKind kind, std::size_t small,
                           std::size_t large, std::size_t count) {
  const Workspace workspace(settings);
  Ledger small_ledger(workspace.path("small.db"));
  Ledger large_ledger(workspace.path("large.db"));
  small_ledger.fill(kind, small);
  large_ledger.fill(kind, large);
  const std::string what =
      fmt::format("ledger with {} ids", kind == IdKind::random ? "random" : "time-ordered");
  return compare(
      settings, {.name = name_of(what, large, small, "rows"), .aim = aim, .better = Better::lower},
      [&] { return 1e6 / large_ledger.messages_per_s(kind, count, batch); },
      [&] { return 1e6 / small_ledger.messages_per_s(kind, count, batch); });
}

// A log of a given size with one producer.
class GrownLog {
 public:
  GrownLog(const std::string& directory, std::size_t records) : directory_(directory) {
    must(create_topic(directory, "load", {}));
    sink_ = must(open_log_sink(directory, "load"));
    stamp_ = must(sink_->producers()->enter(0, "producer"));
    messages_ = make_messages(IdKind::uuid7, 0, 10'000);
    while (stamp_.sequence < records)
      append(std::min<std::size_t>(messages_.size(), records - stamp_.sequence));
    LogSourceOptions options;
    options.stop_at_end = false;
    source_ = must(open_log_source(directory, "load", options));
    const Batch assigned = must(source_->poll(batch, 0));
    if (assigned.event != Batch::Event::assigned) give_up("the log announced no partition");
    partition_ = assigned.partition;
    must(source_->replay()->seek(partition_, 0));
  }

  double us_per_append(std::size_t batches) {
    const Stopwatch watch;
    for (std::size_t i = 0; i < batches; ++i) append(batch);
    return us_per_message(watch.seconds(), batches * batch);
  }

  // From places all over the log, as consumers that start or fall behind read it.
  double us_per_read(std::size_t batches) {
    std::size_t count = 0;
    const Stopwatch watch;
    for (std::size_t i = 0; i < batches; ++i) {
      if (i % batches_per_seek == 0) {
        const std::uint64_t last = stamp_.sequence - batches_per_seek * batch;
        must(source_->replay()->seek(partition_,
                                     static_cast<std::int64_t>(scramble(++reads_) % last)));
      }
      const Batch read = must(source_->poll(batch, 0));
      if (read.deliveries.empty()) give_up("the log had nothing to read");
      count += read.deliveries.size();
    }
    return us_per_message(watch.seconds(), count);
  }

 private:
  void append(std::size_t count) {
    must(sink_->append(0, stamp_, std::span(messages_).first(count)));
    stamp_.sequence += count;
  }

  std::string directory_;
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<Source> source_;
  std::string_view partition_;
  Stamp stamp_;
  std::vector<Message> messages_;
  std::uint64_t reads_ = 0;
};

}  // namespace

void bench_growth(const Settings& settings) {
  const std::size_t small = settings.size(1'000'000, 30'000);
  const std::size_t large = settings.size(20'000'000, 60'000);
  const std::size_t batches = settings.size(300, 2);
  const std::size_t messages = settings.size(30'000, 500);
  std::vector<Comparison> comparisons;
  {
    const Workspace workspace(settings);
    GrownLog small_log(workspace.path("small"), small);
    GrownLog large_log(workspace.path("large"), large);
    comparisons.push_back(compare(
        settings,
        {.name = name_of("append to a log", large, small, "records"),
         .aim = aim,
         .better = Better::lower},
        [&] { return large_log.us_per_append(batches); },
        [&] { return small_log.us_per_append(batches); }));
    comparisons.push_back(compare(
        settings,
        {.name = name_of("read of a log", large, small, "records"),
         .aim = aim,
         .better = Better::lower},
        [&] { return large_log.us_per_read(batches); },
        [&] { return small_log.us_per_read(batches); }));
  }
  for (const IdKind kind : {IdKind::uuid7, IdKind::random})
    comparisons.push_back(compare_ledgers(settings, kind, small, large, messages));
  write_results(settings, "growth",
                {{"small", small},
                 {"large", large},
                 {"messages_per_batch", batch},
                 {"log_batches_per_round", batches},
                 {"ledger_messages_per_round", messages}},
                comparisons);
}

}  // namespace once::bench
