// SPDX-License-Identifier: Apache-2.0
// Thirty points for every order that was paid. See README.md.
//
//   example_03_points DIRECTORY [--rounds N]
#include <once/once.h>

#include "stage.h"

using namespace once;

namespace {

constexpr int order_count = 30;
constexpr int points_per_order = 30;
constexpr int user_count = 4;

std::string order_id(int n) { return "order-" + std::to_string(n); }
std::string user_of(int n) { return "user-" + std::to_string(n % user_count); }

// What the payment provider calls back. It repeats itself, and gives each call an id of its own:
// only the order in the body says what it is about.
std::vector<Message> callbacks(const std::string& round) {
  std::vector<Message> list;
  for (int n = 0; n < order_count; ++n)
    for (const char* attempt : {"first", "again"})
      list.push_back({.id = "call-" + round + "-" + std::to_string(n) + "-" + attempt,
                      .key = user_of(n),
                      .body = R"({"order":")" + order_id(n) + R"(","paid":true})"});
  return list;
}

// The shop: an order that waits for its payment is paid, and the points service is told so in the
// same transaction. With the id rule "json:/order", `call.id` is the order.
Handler payment_handler() {
  return each([](const Delivery& call, SqlTransaction& shop) -> Result<Outcome> {
    ONCE_TRY(shop.execute("UPDATE orders SET state = 'paid' WHERE id = ? AND state = 'waiting'",
                          {call.id}, rows(1, rejected("no order waits for this payment"))));
    ONCE_TRY(shop.enqueue("paid", {.id = std::string(call.id), .key = std::string(call.key)}));
    return applied();
  });
}

// The points service, with a database of its own.
Handler points_handler() {
  return each([](const Delivery& paid, SqlTransaction& points) -> Result<Outcome> {
    ONCE_TRY(points.execute("INSERT INTO points (order_id, user, points) VALUES (?, ?, ?)",
                            {paid.id, paid.key, points_per_order}));
    ONCE_TRY(points.execute("UPDATE member SET points = points + ? WHERE user = ?",
                            {points_per_order, paid.key}, rows(1, parked("no such member"))));
    return applied();
  });
}

Status check(Store& shop, Store& points) {
  std::vector<std::string> orders;
  for (int n = 0; n < order_count; ++n) orders.push_back(order_id(n));
  ONCE_TRY(stage::same("paid orders", shop, "SELECT id FROM orders WHERE state = 'paid' ORDER BY n",
                       orders));
  ONCE_TRY(stage::same("points", points, "SELECT order_id FROM points ORDER BY n", orders));
  const Rows members = ONCE_TRY(
      stage::ask(points,
                 "SELECT user, points, (SELECT SUM(p.points) FROM points p WHERE p.user = m.user)"
                 " FROM member m"));
  for (const Row& row : members)
    ONCE_TRY(stage::equal("the points of " + std::get<std::string>(row[0]),
                          std::get<std::int64_t>(row[1]), std::get<std::int64_t>(row[2])));
  return {};
}

// Orders that wait for their payment, and members without points.
Status set_up(Store& shop, Store& points) {
  ONCE_TRY(stage::set_up(
      shop, {"CREATE TABLE IF NOT EXISTS orders (n INTEGER PRIMARY KEY, id TEXT, state TEXT)",
             "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 29)"
             " INSERT OR IGNORE INTO orders SELECT n, 'order-' || n, 'waiting' FROM c"}));
  return stage::set_up(points,
                       {"CREATE TABLE IF NOT EXISTS points (n INTEGER PRIMARY KEY, order_id TEXT,"
                        " user TEXT, points INTEGER)",
                        "CREATE TABLE IF NOT EXISTS member (user TEXT PRIMARY KEY, points INTEGER)",
                        "INSERT OR IGNORE INTO member VALUES"
                        " ('user-0', 0), ('user-1', 0), ('user-2', 0), ('user-3', 0)"});
}

Result<std::string> run(const stage::Arguments& arguments) {
  const std::string& directory = arguments.directory;
  auto shop = ONCE_TRY(open_store("sqlite:" + directory + "/shop.db"));
  auto points = ONCE_TRY(open_store("sqlite:" + directory + "/points.db"));
  ONCE_TRY(set_up(*shop, *points));

  PipelineOptions paying;
  paying.scope = "shop/payments";
  paying.id = ONCE_TRY(IdRule::parse("json:/order"));  // never the id of the call
  PipelineOptions collecting;
  collecting.scope = "points/paid";
  collecting.id = IdRule{};
  for (int round = 1; round <= arguments.rounds; ++round) {
    const std::string name = std::to_string(round);
    ONCE_TRY(stage::send(directory, "callbacks", "provider " + name, callbacks(name)));
    ONCE_TRY(stage::consume(directory, "callbacks", *shop, payment_handler(), paying));
    ONCE_TRY(stage::relay(directory, "paid", *shop));
    ONCE_TRY(stage::consume(directory, "paid", *points, points_handler(), collecting));
  }
  ONCE_TRY(check(*shop, *points));
  return std::to_string(order_count) + " orders paid, each with its points once";
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = stage::arguments(argc, argv);
  if (!arguments) return stage::end(fail(arguments.error()));
  return stage::end(run(*arguments));
}
