// SPDX-License-Identifier: Apache-2.0
// Payments from Kafka into a database, one id and one durable change of an account each: `once run`
// beside what people write by hand; our source beside librdkafka; and what `once run` needs of
// memory when much is waiting.
#include <fmt/format.h>
#include <once/open.h>

#include <fstream>

#include "benchmarks.h"
#include "raw_kafka.h"
#include "run_program.h"
#include "server.h"

namespace once::bench {
namespace {

constexpr std::size_t rows = 1000;  // per transaction
constexpr double megabytes_goal = 100;

struct Sizes {
  std::size_t messages = 0;         // in the topic
  std::size_t recipe_messages = 0;  // fewer, for it is slow
  std::size_t backlog = 0;          // in the topic of which the memory is measured
  double backlog_s = 0;             // for how long
};

// A database with accounts that `once run` and the consumers by hand pay into.
class Bank {
 public:
  Bank(const ServerKind& kind, const std::string& url, const KafkaTopic& topic,
       const std::string& directory)
      : url_(url), topic_(topic), file_(directory + "/payments.toml"), peer_(kind.connect(url)) {
    make_accounts(kind, *peer_);
    must(kind.open_store(url));  // makes our tables
  }

  // `once run` until the end of the topic, start and stop of the program included.
  double once_run(std::size_t lanes, std::size_t count) {
    describe(lanes, topic_, "stop");
    clear();
    const std::int64_t before = sum();
    const Usage usage = run_program({"run", file_, "--quiet"});
    check_books(before, count);
    return static_cast<double>(count) / usage.seconds;
  }

  double peak_megabytes(const KafkaTopic& topic, double seconds) {
    describe(topic.partitions, topic, "wait");
    return run_program({"run", file_, "--quiet"}, seconds).peak_megabytes;
  }

  // A transaction per message, in which the id is marked and the account changed.
  double each_by_hand(std::size_t count) {
    clear();
    const std::int64_t before = sum();
    RawConsumer consumer(topic_);
    peer_->handle(payment_in(consumer.next()));
    const Stopwatch watch;  // with the first message, when everything is connected and prepared
    for (std::size_t i = 1; i < count; ++i) peer_->handle(payment_in(consumer.next()));
    const double seconds = watch.seconds();
    check_books(before, count);
    return static_cast<double>(count - 1) / seconds;
  }

  // All messages that a poll gave in one statement. Nothing tells what came twice.
  double batches_by_hand(std::size_t count) {
    const std::int64_t before = sum();
    RawConsumer consumer(topic_);
    std::size_t done = pay(consumer);
    const std::size_t first = done;
    const Stopwatch watch;
    while (done < count) done += pay(consumer);
    const double seconds = watch.seconds();
    check_books(before, count);
    return static_cast<double>(count - first) / seconds;
  }

 private:
  std::size_t pay(RawConsumer& consumer) {
    std::vector<Message> payments;
    for (const rd_kafka_message_t* const message : consumer.next(rows))
      payments.push_back(payment_in(*message));
    peer_->handle_all(payments, Dedup::no);
    return payments.size();
  }

  // A scope of its own: each run begins at the beginning of the topic.
  void describe(std::size_t lanes, const KafkaTopic& topic, const char* at_end) {
    std::ofstream(file_) << fmt::format(
        "scope = \"bench-{}\"\n[source]\nurl = \"{}\"\nid = \"json:/id\"\n[store]\nurl = \"{}\"\n"
        "[run]\nlanes = {}\nbatch = {}\nat_end = \"{}\"\n[values]\n"
        "account = {{ json = \"/account\", type = \"integer\" }}\n"
        "amount = {{ json = \"/amount\", type = \"integer\" }}\n[[do]]\n"
        "sql = \"UPDATE account SET balance = balance + :amount WHERE number = :account\"\n"
        "rows = 1\n",
        ++runs_, topic.url(), url_, lanes, rows, at_end);
  }

  // So that all rounds begin alike.
  void clear() {
    peer_->run("TRUNCATE TABLE processed");
    peer_->run("TRUNCATE TABLE once_ledger");
  }

  std::int64_t sum() { return peer_->number("SELECT sum(balance) FROM account"); }
  void check_books(std::int64_t before, std::size_t count) {
    const std::int64_t paid = sum() - before;
    if (paid != static_cast<std::int64_t>(count))
      give_up(fmt::format("{} messages had {} effects", count, paid));
  }

  const std::string url_;
  const KafkaTopic& topic_;
  const std::string file_;
  std::unique_ptr<Peer> peer_;
  std::size_t runs_ = 0;
};

void measure_bank(const Settings& settings, const Sizes& sizes, const ServerKind& kind,
                  const KafkaTopic& topic, const KafkaTopic& backlog,
                  std::vector<Comparison>& comparisons) {
  const auto server = Server::start(settings, kind.name);
  if (server == nullptr) return;
  const Workspace workspace(settings);
  Bank bank(kind, server->url(), topic, workspace.directory());
  for (const std::size_t lanes : {std::size_t{1}, std::size_t{topic.partitions}}) {
    const std::string what =
        fmt::format("Kafka to {}, once run{}", kind.title, lanes > 1 ? " on three lanes" : "");
    comparisons.push_back(compare(
        settings,
        {.name = what + " against a consumer by hand with a transaction per message, messages/s",
         .aim = 25},
        [&] { return bank.once_run(lanes, sizes.messages); },
        [&] { return bank.each_by_hand(sizes.recipe_messages); }));
    comparisons.push_back(compare(
        settings,
        {.name = what + " against a consumer by hand with set-based SQL and no dedup, messages/s",
         .aim = 0.7},
        [&] { return bank.once_run(lanes, sizes.messages); },
        [&] { return bank.batches_by_hand(sizes.messages); }));
  }
  Settings once = settings;
  once.rounds = 1;
  once.warm_up_rounds = 0;
  comparisons.push_back(compare(
      once,
      {.name = fmt::format("Kafka to {}, once run, peak memory with {} messages waiting against "
                           "the goal (lower is better), MB",
                           kind.title, sizes.backlog),
       .aim = 1,
       .better = Better::lower},
      [&] { return bank.peak_megabytes(backlog, sizes.backlog_s); },
      [] { return megabytes_goal; }));
}

double source_messages_per_s(const KafkaTopic& topic, std::size_t count) {
  const auto source = must(open_kafka_source(topic.url()));
  std::size_t seen = 0;
  std::size_t first = 0;
  std::size_t bytes = 0;
  std::optional<Stopwatch> watch;
  while (seen < count) {
    const Batch batch = must(source->poll(rows, 1000));
    if (batch.event == Batch::Event::assigned) must(source->replay()->seek(batch.partition, -1));
    for (const Delivery& delivery : batch.deliveries) bytes += delivery.body.size();
    seen += batch.deliveries.size();
    if (watch || seen == 0) continue;
    watch.emplace();
    first = seen;
  }
  if (bytes == 0) give_up("the messages are empty");
  return static_cast<double>(count - first) / watch->seconds();
}

double raw_messages_per_s(const KafkaTopic& topic, std::size_t count) {
  RawConsumer consumer(topic);
  std::size_t seen = consumer.next(rows).size();
  const std::size_t first = seen;
  std::size_t bytes = 0;
  const Stopwatch watch;
  while (seen < count)
    for (const rd_kafka_message_t* const message : consumer.next(rows)) {
      bytes += message->len;
      ++seen;
    }
  if (bytes == 0) give_up("the messages are empty");
  return static_cast<double>(count - first) / watch.seconds();
}

}  // namespace

void bench_kafka(const Settings& settings) {
  const Sizes sizes{.messages = settings.size(400'000, 2'000),
                    .recipe_messages = settings.size(5'000, 50),
                    .backlog = settings.size(10'000'000, 5'000),
                    .backlog_s = settings.quick ? 1.0 : 30.0};
  const auto broker = Server::start(settings, "kafka");
  if (broker == nullptr) return;
  const KafkaTopic topic{.server_url = broker->url(), .name = "payments"};
  const KafkaTopic backlog{.server_url = broker->url(), .name = "backlog"};
  fill_topic(topic, sizes.messages);
  fill_topic(backlog, sizes.backlog);
  std::vector<Comparison> comparisons;
  const std::size_t read = std::min<std::size_t>(sizes.backlog, 2'000'000);
  comparisons.push_back(compare(
      settings, {.name = "Kafka, our source against librdkafka, messages/s", .aim = 0.9},
      [&] { return source_messages_per_s(backlog, read); },
      [&] { return raw_messages_per_s(backlog, read); }));
  for (const ServerKind& kind : server_kinds())
    measure_bank(settings, sizes, kind, topic, backlog, comparisons);
  write_results(settings, "kafka",
                {{"messages_in_the_topic", sizes.messages},
                 {"messages_per_round_of_the_recipe", sizes.recipe_messages},
                 {"messages_read_by_the_source", read},
                 {"messages_waiting", sizes.backlog},
                 {"partitions", topic.partitions},
                 {"messages_per_transaction", rows},
                 {"accounts", account_count}},
                comparisons);
}

}  // namespace once::bench
