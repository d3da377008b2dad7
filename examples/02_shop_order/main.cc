// SPDX-License-Identifier: Apache-2.0
// An order takes a piece from the stock and money from the customer, and tells the warehouse. See
// README.md.
//
//   example_02_shop_order DIRECTORY [--rounds N]
#include <once/once.h>

#include "stage.h"

using namespace once;

namespace {

constexpr int order_count = 30;
constexpr int price = 20;
constexpr int opening_stock = 100;
constexpr int opening_credit = 150;  // of each customer: enough for seven orders

// Three customers with ten orders each, so that the last three of each are refused.
std::string order_id(int n) { return "order " + std::to_string(n); }
std::string customer_of(int n) { return "customer " + std::to_string(n % 3); }
bool can_be_paid(int n) { return n / 3 < opening_credit / price; }

std::vector<Message> orders() {
  std::vector<Message> list;
  for (int n = 0; n < order_count; ++n)
    list.push_back({.id = order_id(n), .key = customer_of(n), .body = "umbrella"});
  return list;
}

// Order, stock, payment and the message to the warehouse are one transaction: all of it or none.
Handler order_handler() {
  return each([](const Delivery& order, SqlTransaction& shop) -> Result<Outcome> {
    ONCE_TRY(
        shop.execute("INSERT INTO orders (id, customer) VALUES (?, ?)", {order.id, order.key}));
    // What a statement must touch, and what becomes of the order if it does not: everything that
    // it wrote is undone, and the refusal is remembered.
    ONCE_TRY(shop.execute("UPDATE stock SET pieces = pieces - 1 WHERE item = ? AND pieces > 0",
                          {order.body}, rows(1, rejected("sold out"))));
    ONCE_TRY(shop.execute("UPDATE customer SET credit = credit - ? WHERE name = ? AND credit >= ?",
                          {price, order.key, price}, rows(1, rejected("not enough money"))));
    ONCE_TRY(shop.execute("INSERT INTO payment (order_id) VALUES (?)", {order.id}));
    ONCE_TRY(shop.enqueue("shipping", {.id = "ship " + std::string(order.id),
                                       .key = std::string(order.key),
                                       .body = std::string(order.id)}));
    return applied("paid");
  });
}

// The warehouse has a database of its own, and is told by a message.
Handler shipping_handler() {
  return each([](const Delivery& message, SqlTransaction& warehouse) -> Result<Outcome> {
    ONCE_TRY(warehouse.execute("INSERT INTO parcel (order_id) VALUES (?)", {message.body}));
    return applied();
  });
}

Status check(Store& shop, Store& warehouse) {
  std::vector<std::string> paid;
  for (int n = 0; n < order_count; ++n)
    if (can_be_paid(n)) paid.push_back(order_id(n));
  ONCE_TRY(stage::same("orders", shop, "SELECT id FROM orders ORDER BY n", paid));
  ONCE_TRY(stage::same("payments", shop, "SELECT order_id FROM payment ORDER BY n", paid));
  ONCE_TRY(stage::same("parcels", warehouse, "SELECT order_id FROM parcel ORDER BY n", paid));
  const Rows left = ONCE_TRY(
      stage::ask(shop, "SELECT (SELECT pieces FROM stock), (SELECT SUM(credit) FROM customer)"));
  const auto sold = static_cast<std::int64_t>(paid.size());
  ONCE_TRY(stage::equal("the stock", std::get<std::int64_t>(left[0][0]), opening_stock - sold));
  return stage::equal("the money", std::get<std::int64_t>(left[0][1]),
                      3 * opening_credit - sold * price);
}

Status set_up(Store& shop, Store& warehouse) {
  // No unique keys, on purpose: what is done twice can be seen twice.
  ONCE_TRY(stage::set_up(
      shop, {"CREATE TABLE IF NOT EXISTS orders (n INTEGER PRIMARY KEY, id TEXT, customer TEXT)",
             "CREATE TABLE IF NOT EXISTS payment (n INTEGER PRIMARY KEY, order_id TEXT)",
             "CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, pieces INTEGER)",
             "CREATE TABLE IF NOT EXISTS customer (name TEXT PRIMARY KEY, credit INTEGER)",
             "INSERT OR IGNORE INTO stock VALUES ('umbrella', 100)",
             "INSERT OR IGNORE INTO customer VALUES"
             " ('customer 0', 150), ('customer 1', 150), ('customer 2', 150)"}));
  return stage::set_up(
      warehouse, {"CREATE TABLE IF NOT EXISTS parcel (n INTEGER PRIMARY KEY, order_id TEXT)"});
}

Result<std::string> run(const stage::Arguments& arguments) {
  const std::string& directory = arguments.directory;
  auto shop = ONCE_TRY(open_store("sqlite:" + directory + "/shop.db"));
  auto warehouse = ONCE_TRY(open_store("sqlite:" + directory + "/warehouse.db"));
  ONCE_TRY(set_up(*shop, *warehouse));

  PipelineOptions shopping;
  shopping.scope = "shop/orders";
  shopping.id = IdRule{};  // the id that the message carries: "order 7"
  PipelineOptions shipping = shopping;
  shipping.scope = "warehouse/shipping";
  for (int round = 1; round <= arguments.rounds; ++round) {
    ONCE_TRY(
        stage::send(directory, "orders", "web " + std::to_string(round), stage::doubled(orders())));
    ONCE_TRY(stage::consume(directory, "orders", *shop, order_handler(), shopping));
    ONCE_TRY(stage::relay(directory, "shipping", *shop));
    ONCE_TRY(stage::consume(directory, "shipping", *warehouse, shipping_handler(), shipping));
  }
  ONCE_TRY(check(*shop, *warehouse));
  return std::to_string(order_count) + " orders, each paid and shipped once, or refused";
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = stage::arguments(argc, argv);
  if (!arguments) return stage::end(fail(arguments.error()));
  return stage::end(run(*arguments));
}
