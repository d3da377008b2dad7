// SPDX-License-Identifier: Apache-2.0
// One short run of everything that is durable: producer, log, pipeline, store, outbox, relay,
// second log, second pipeline; a pipeline whose messages wait in the store; then payments at a bank
// outside the store, under claims. It may be killed anywhere and started again on the same
// directory and store; in the end the books must balance (books.py looks).
//
//   crash_worker DIRECTORY effectively_once|at_least_once|at_most_once STORE
#include <fmt/format.h>
#include <once/once.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bank.h"
#include "base/failpoint.h"

namespace once {
namespace {

constexpr int order_count = 12;
constexpr int customer_count = 3;
constexpr int poison_order = 7;  // its handler always asks to park it
constexpr std::int64_t first_birth_ms = 1'700'000'000'000;

std::int64_t birth_ms(int order) { return first_birth_ms + order * 1000; }

class Worker {
 public:
  Worker(std::string directory, Semantics semantics, std::string store_url)
      : directory_(std::move(directory)), semantics_(semantics), store_url_(std::move(store_url)) {}

  Status run() {
    TopicOptions options;
    options.segment_bytes_max = 4096;  // some rolls
    ONCE_TRY(create_topic(directory_, "orders", options));
    ONCE_TRY(create_topic(directory_, "points", options));
    store_ = ONCE_TRY(open_store(store_url_));
    ONCE_TRY(make_tables());

    ONCE_TRY(send_orders("shop"));
    ONCE_TRY(consume("orders", "shop/orders", order_handler()));
    if (semantics_ == Semantics::effectively_once) {
      // Half of the ids are forgotten, then all orders are sent once more, by somebody else.
      ONCE_TRY(store_->forget("shop/orders", birth_ms(order_count / 2), 1000));
      ONCE_TRY(send_orders("shop again"));
      ONCE_TRY(consume("orders", "shop/orders", order_handler()));
      ONCE_TRY(ship_orders());
    }
    ONCE_TRY(relay_points());
    ONCE_TRY(consume("points", "shop/points", point_handler()));
    return pay_orders();
  }

 private:
  // Without a unique key on purpose: what is done twice is seen twice.
  Status make_tables() {
    if (!store_->traits().sql) return {};
    auto transaction = ONCE_TRY(store_->begin("setup"));
    SqlTransaction& sql = *transaction->sql();
    if (sql.dialect() == SqlDialect::mysql) return {};  // stores.py did: no transaction can
    for (const char* table : {"order_effects", "point_effects", "ship_effects"})
      ONCE_TRY(sql.execute(
          fmt::format("CREATE TABLE IF NOT EXISTS {} (n {} PRIMARY KEY, id TEXT)", table,
                      sql.dialect() == SqlDialect::sqlite ? "INTEGER" : "BIGSERIAL")));
    return transaction->commit();
  }

  // A row, or a line of the text under this name.
  static Status add_effect(Transaction& transaction, const std::string& table,
                           std::string_view id) {
    if (SqlTransaction* sql = transaction.sql())
      return sql->execute(fmt::format("INSERT INTO {} (id) VALUES (?)", table), {Value(id)},
                          rows(1));
    KeyValueTransaction& values = *transaction.key_value();
    const std::string before = ONCE_TRY(values.get(table)).value_or("");
    return values.put(table, fmt::format("{}{}\n", before, id));
  }

  Status send_orders(const std::string& name) {
    auto sink = ONCE_TRY(open_log_sink(directory_, "orders"));
    ProducerOptions options;
    options.name = name;
    options.replay = true;
    auto producer = ONCE_TRY(Producer::open(*sink, options));
    for (int order = 0; order < order_count; order += 4) {
      std::vector<Message> messages;
      for (int i = order; i < order + 4; ++i) {
        Message message;
        message.id = fmt::format("order-{}", i);
        message.key = fmt::format("customer-{}", i % customer_count);
        message.body = fmt::format("{{\"order\":{},\"note\":\"{}\"}}", i, std::string(400, 'x'));
        message.timestamp_ms = birth_ms(i);
        messages.push_back(std::move(message));
      }
      ONCE_TRY(producer->send(messages));
    }
    return {};
  }

  Handler order_handler() {
    return each([](const Delivery& delivery, Transaction& transaction) -> Result<Outcome> {
      ONCE_TRY(add_effect(transaction, "order_effects", delivery.id));
      if (delivery.id == fmt::format("order-{}", poison_order)) return parked("poison");
      Message points;
      points.id = fmt::format("points-{}", delivery.id);
      points.body = delivery.body;
      points.timestamp_ms = delivery.timestamp_ms;
      ONCE_TRY(transaction.enqueue("points", points));
      return applied();
    });
  }

  Handler point_handler() {
    return each([](const Delivery& delivery, Transaction& transaction) -> Result<Outcome> {
      ONCE_TRY(add_effect(transaction, "point_effects", delivery.id));
      return applied();
    });
  }

  // The first order of a customer has to wait, and with it those behind it.
  Status ship_orders() {
    const std::string scope = "shop/ships";
    do {
      ONCE_TRY(consume("orders", scope, ship_handler(), Order::key));
    } while (!ONCE_TRY(store_->deferrals()->deferred(scope, 0, 1)).empty());
    return {};
  }

  Handler ship_handler() {
    return each([](const Delivery& delivery, Transaction& transaction) -> Result<Outcome> {
      ONCE_TRY(add_effect(transaction, "ship_effects", delivery.id));
      const int order = std::stoi(std::string(delivery.id.substr(delivery.id.find('-') + 1)));
      if (order < customer_count && delivery.deferral.attempts == 0)
        return later("not in stock", 1);
      return applied();
    });
  }

  // Each kind of effect that can keep the promise of this run has a bank of its own.
  Status pay_orders() {
    const FileBank keyed(directory_ + "/bank_keyed.txt", true);
    const FileBank asked(directory_ + "/bank_asked.txt", false);
    const FileBank opaque(directory_ + "/bank_opaque.txt", false);
    const EffectOptions options{.lease_ms = 40};  // a dead owner is not waited for long
    switch (semantics_) {
      case Semantics::effectively_once: {
        ONCE_TRY(consume("orders", "pay/keyed", handler_of(Keyed{paying(keyed), options})));
        const Resolver ask = [&](const Ticket& ticket) {
          return asked.ask(ticket.downstream_id());
        };
        return consume("orders", "pay/asked", handler_of(Queryable{paying(asked), ask, options}));
      }
      case Semantics::at_least_once:
        return consume("orders", "pay/opaque",
                       handler_of(Opaque<Semantics::at_least_once>{paying(opaque), options}));
      case Semantics::at_most_once:
        return consume("orders", "pay/opaque",
                       handler_of(Opaque<Semantics::at_most_once>{paying(opaque), options}));
    }
    return {};
  }

  static Outside::Run paying(const FileBank& bank) {
    return [&bank](const Delivery& delivery, Ticket& ticket) -> Result<Outcome> {
      return applied(ONCE_TRY(bank.pay(ticket.downstream_id(), delivery.id)));
    };
  }

  Status consume(const std::string& topic, const std::string& scope, Handler handler,
                 Order order = Order::partition) {
    LogSourceOptions bounded;
    bounded.stop_at_end = true;
    auto source = ONCE_TRY(open_log_source(directory_, topic, bounded));
    PipelineOptions options;
    options.scope = scope;
    options.semantics = semantics_;
    options.order = order;
    options.id = IdRule{};
    options.retention_ms = -1;  // this program says itself when to forget
    options.batch_count_max = 5;
    options.retry.backoff_ms_min = 0;
    options.retry.backoff_ms_max = 1;
    auto pipeline = ONCE_TRY(Pipeline::make(*source, *store_, std::move(handler), options));
    return pipeline->run();
  }

  Status relay_points() {
    RelayOptions options;
    options.name = "relay";
    options.batch_count_max = 5;
    auto relay = ONCE_TRY(Relay::make(
        *store_,
        [&](std::string_view) -> Result<std::shared_ptr<Sink>> {
          return open_log_sink(directory_, "points");
        },
        options));
    while (ONCE_TRY(relay->step()) > 0) continue;
    return {};
  }

  const std::string directory_;
  const Semantics semantics_;
  const std::string store_url_;
  std::unique_ptr<Store> store_;
};

int run(const std::string& directory, const std::string& word, const std::string& store_url) {
  Semantics semantics;
  if (word == "effectively_once")
    semantics = Semantics::effectively_once;
  else if (word == "at_least_once")
    semantics = Semantics::at_least_once;
  else if (word == "at_most_once")
    semantics = Semantics::at_most_once;
  else
    return std::fprintf(stderr, "unknown semantics %s\n", word.c_str()), 2;
  const Status done = Worker(directory, semantics, store_url).run();
  if (done) return 0;
  std::fprintf(stderr, "%s/%s: %s\n", name_of(done.error().remedy), done.error().tag.c_str(),
               done.error().text.c_str());
  return 1;
}

}  // namespace
}  // namespace once

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: %s DIRECTORY SEMANTICS STORE\n", argv[0]), 2;
  if (!once::arm_point_from_environment())
    return std::fprintf(stderr, "ONCE_POINT names no failpoint\n"), 2;
  return once::run(argv[1], argv[2], argv[3]);
}
