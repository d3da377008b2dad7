// SPDX-License-Identifier: Apache-2.0
// The recipe that people write by hand, with care but without Once:
//
//   1. look the id up in the table `processed`; known: skip the message
//   2. do the work, in a transaction
//   3. mark the id as processed
//   4. tell the others: publish the payment
//   5. after the batch, commit the offset
//
// Nothing here is made worse than it is: every commit is synced, the offset is committed last, and
// a second copy of a message is recognised. What breaks it are the windows between its steps.
#include <fmt/format.h>
#include <once/open.h>
#include <once/producer.h>

#include <chrono>
#include <functional>
#include <thread>

#include "cli/demo/database.h"
#include "cli/demo/journal.h"
#include "cli/demo/roles.h"
#include "cli/demo/shop.h"
#include "cli/demo/weather.h"
#include "model/start_at.h"

namespace once::cli {
namespace {

using Publish = std::function<Status(const Order&)>;

class NaiveConsumer {
 public:
  NaiveConsumer(std::string name, Source& source, Database& database,
                std::vector<Step> (*work)(const Order&), Publish publish)
      : name_(std::move(name)),
        source_(source),
        database_(database),
        work_(work),
        publish_(std::move(publish)) {}

  Status run() {
    while (!end_was_asked()) {
      const Batch batch = ONCE_TRY(source_.poll(20, 5));
      if (batch.event == Batch::Event::assigned) ONCE_TRY(start(batch.partition));
      if (batch.deliveries.empty()) continue;
      for (const Delivery& delivery : batch.deliveries) {
        ONCE_TRY(handle(delivery));
        if (end_was_asked()) return {};
      }
      ONCE_TRY(commit_offset(batch.partition, batch.deliveries.back().offset + 1));
      ONCE_TRY(source_.ack(batch.deliveries));
    }
    return {};
  }

 private:
  Status start(std::string_view partition) {
    const Rows found = ONCE_TRY(database_.query(
        "SELECT offset FROM offsets WHERE consumer = ? AND partition = ?", {name_, partition}));
    return start_at(source_, partition, found.empty() ? -1 : integer(found[0][0]));
  }

  Status commit_offset(std::string_view partition, std::int64_t offset) {
    return database_.run("INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)",
                         {name_, partition, offset});
  }

  Status handle(const Delivery& delivery) {
    const Order order = ONCE_TRY(order_of(delivery.body));
    const Rows known = ONCE_TRY(database_.query(
        "SELECT 1 FROM processed WHERE consumer = ? AND id = ?", {name_, order.id}));
    if (!known.empty()) return {};
    ONCE_TRY(database_.run("BEGIN IMMEDIATE"));
    for (const Step& step : work_(order)) ONCE_TRY(database_.run(step.statement, step.values));
    ONCE_TRY(database_.run("COMMIT"));
    ONCE_TRY(database_.run("INSERT OR IGNORE INTO processed VALUES (?, ?)", {name_, order.id}));
    return publish_(order);
  }

  const std::string name_;
  Source& source_;
  Database& database_;
  std::vector<Step> (*work_)(const Order&);
  Publish publish_;
};

Result<Database> open_naive(const DemoSettings& settings) {
  return Database::open(settings.directory + "/naive.db");
}

// A producer as it comes: with a random name, made when it is needed for the first time. While
// another owner holds the topic it has to wait.
class Publisher {
 public:
  explicit Publisher(const DemoSettings& settings)
      : url_(fmt::format("file:{}/{}", settings.directory, naive_payments_topic)) {}

  Status publish(const Order& order) {
    if (!producer_) ONCE_TRY(open());
    const Message message = paid_message(order);
    ONCE_TRY(producer_->send(std::span(&message, 1)));
    return {};
  }

 private:
  Status open() {
    while (true) {
      auto sink = open_sink(url_);
      if (!sink && sink.error().tag != "busy") return fail(sink.error());
      if (!sink && end_was_asked()) return fail(sink.error());
      if (!sink) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        continue;
      }
      sink_ = std::move(*sink);
      producer_ = ONCE_TRY(Producer::open(*sink_, {}));
      return {};
    }
  }

  const std::string url_;
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<Producer> producer_;
};

Status play(const std::string& role, std::string_view topic,
            std::vector<Step> (*work)(const Order&), Publish publish,
            const DemoSettings& settings) {
  Journal journal = ONCE_TRY(Journal::open(settings.directory, role, settings.number));
  Database database = ONCE_TRY(open_naive(settings));
  auto log = ONCE_TRY(open_source(fmt::format("file:{}/{}", settings.directory, topic)));
  ForgetfulSource source(*log, journal, seed_of_process(settings));
  NaiveConsumer consumer(role, source, database, work, std::move(publish));
  return consumer.run();
}

}  // namespace

Status play_naive_orders(const DemoSettings& settings) {
  Publisher publisher(settings);
  return play(
      "naive-orders", orders_topic, steps_of_order,
      [&](const Order& order) { return publisher.publish(order); }, settings);
}

Status play_naive_points(const DemoSettings& settings) {
  return play(
      "naive-points", naive_payments_topic, steps_of_payment, [](const Order&) { return Status(); },
      settings);
}

}  // namespace once::cli
