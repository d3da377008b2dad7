// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/shop.h"

#include <fmt/format.h>

#include "cli/output.h"

namespace once::cli {

std::vector<std::string> shop_schema() {
  std::vector<std::string> statements{
      "CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, quantity INTEGER NOT NULL)",
      "CREATE TABLE IF NOT EXISTS till (name TEXT PRIMARY KEY, balance_cents INTEGER NOT NULL)",
      "CREATE TABLE IF NOT EXISTS customers (customer TEXT PRIMARY KEY, points INTEGER NOT NULL)",
      "CREATE TABLE IF NOT EXISTS orders (row INTEGER PRIMARY KEY, order_id TEXT, customer TEXT, "
      "number INTEGER, item TEXT, quantity INTEGER, amount_cents INTEGER)",
      "CREATE TABLE IF NOT EXISTS payments (row INTEGER PRIMARY KEY, order_id TEXT, "
      "amount_cents INTEGER)",
      "CREATE TABLE IF NOT EXISTS points (row INTEGER PRIMARY KEY, order_id TEXT, customer TEXT, "
      "points INTEGER)",
      "INSERT OR IGNORE INTO till VALUES ('shop', 0)"};
  for (const std::string& item : shop_items())
    statements.push_back(
        fmt::format("INSERT OR IGNORE INTO stock VALUES ('{}', {})", item, stock_at_start));
  return statements;
}

Result<Order> order_of(std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  const auto has = [&](const char* name, Json::value_t type) {
    return json.contains(name) && json[name].type() == type;
  };
  constexpr auto text = Json::value_t::string;
  constexpr auto number = Json::value_t::number_unsigned;
  if (!json.is_object() || !has("order_id", text) || !has("customer", text) || !has("item", text) ||
      !has("number", number) || !has("quantity", number) || !has("amount_cents", number))
    return fail(Remedy::park, "order", fmt::format("this is no order of the shop: {}", body));
  return Order{.id = json["order_id"],
               .customer = json["customer"],
               .number = json["number"],
               .item = json["item"],
               .quantity = json["quantity"],
               .amount_cents = json["amount_cents"]};
}

std::vector<Step> steps_of_order(const Order& order) {
  return {
      {"INSERT INTO orders (order_id, customer, number, item, quantity, amount_cents) "
       "VALUES (?, ?, ?, ?, ?, ?)",
       {order.id, order.customer, order.number, order.item, order.quantity, order.amount_cents}},
      {"UPDATE stock SET quantity = quantity - ? WHERE item = ?", {order.quantity, order.item}},
      {"INSERT INTO payments (order_id, amount_cents) VALUES (?, ?)",
       {order.id, order.amount_cents}},
      {"UPDATE till SET balance_cents = balance_cents + ? WHERE name = 'shop'",
       {order.amount_cents}}};
}

std::vector<Step> steps_of_payment(const Order& order) {
  const std::int64_t points = points_for(order.amount_cents);
  return {{"INSERT INTO points (order_id, customer, points) VALUES (?, ?, ?)",
           {order.id, order.customer, points}},
          {"INSERT INTO customers VALUES (?, ?) "
           "ON CONFLICT (customer) DO UPDATE SET points = points + excluded.points",
           {order.customer, points}}};
}

Message paid_message(const Order& order) {
  Message message;
  message.id = "paid:" + order.id;
  message.key = order.customer;
  message.body = body_of(order);
  return message;
}

Handler take_orders() {
  return each([](const Delivery& delivery, SqlTransaction& transaction) -> Result<Outcome> {
    const Order order = ONCE_TRY(order_of(delivery.body));
    for (const Step& step : steps_of_order(order))
      ONCE_TRY(transaction.execute(step.statement, step.values, rows(1)));
    ONCE_TRY(transaction.enqueue(payments_topic, paid_message(order)));
    return applied();
  });
}

Handler give_points() {
  return each([](const Delivery& delivery, SqlTransaction& transaction) -> Result<Outcome> {
    const Order order = ONCE_TRY(order_of(delivery.body));
    for (const Step& step : steps_of_payment(order))
      ONCE_TRY(transaction.execute(step.statement, step.values, rows(1)));
    return applied();
  });
}

}  // namespace once::cli
