// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/audit.h"

#include <fmt/format.h>
#include <once/log.h>
#include <once/open.h>
#include <once/records.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>

#include "cli/demo/database.h"
#include "cli/demo/journal.h"
#include "cli/demo/shop.h"
#include "model/start_at.h"

namespace once::cli {
namespace {

Status for_each_message(const std::string& directory, std::string_view topic,
                        const std::function<Status(const Delivery&)>& visit) {
  auto source = ONCE_TRY(open_log_source(directory, std::string(topic), {.stop_at_end = true}));
  while (true) {
    const Batch batch = ONCE_TRY(source->poll(1000, 100));
    if (batch.event == Batch::Event::end) return {};
    if (batch.event == Batch::Event::assigned) ONCE_TRY(start_at(*source, batch.partition, -1));
    for (const Delivery& delivery : batch.deliveries) ONCE_TRY(visit(delivery));
  }
}

// How often each order is in a table.
Result<std::map<std::string, std::int64_t>> effects_in(Database& database, const char* table) {
  std::map<std::string, std::int64_t> effects;
  const std::string statement =
      fmt::format("SELECT order_id, count(*) FROM {} GROUP BY order_id", table);
  for (const Row& row : ONCE_TRY(database.query(statement)))
    effects[text(row[0])] = integer(row[1]);
  return effects;
}

std::int64_t sum_of(const std::map<std::string, std::int64_t>& effects) {
  std::int64_t sum = 0;
  for (const auto& [id, count] : effects) sum += count;
  return sum;
}

Result<std::int64_t> number_from(Database& database, const std::string& statement) {
  const Rows rows = ONCE_TRY(database.query(statement));
  return rows.empty() ? 0 : integer(rows[0][0]);
}

// The sums of the books against the orders that are in the log, each counted once.
Result<std::string> check_books(Database& database, const std::map<std::string, Order>& orders) {
  std::map<std::string, std::int64_t> taken;
  std::map<std::string, std::int64_t> points;
  std::int64_t amount_cents = 0;
  for (const auto& [id, order] : orders) {
    taken[order.item] += order.quantity;
    points[order.customer] += points_for(order.amount_cents);
    amount_cents += order.amount_cents;
  }
  std::vector<std::string> wrong;
  std::int64_t pieces_off = 0;
  bool stock_wrong = false;
  for (const std::string& item : shop_items()) {
    const std::int64_t left = ONCE_TRY(
        number_from(database, fmt::format("SELECT quantity FROM stock WHERE item = '{}'", item)));
    const std::int64_t off = left - (stock_at_start - taken[item]);
    stock_wrong = stock_wrong || off != 0;
    pieces_off += off;
  }
  if (stock_wrong) wrong.push_back(fmt::format("stock off by {}", pieces_off));
  const std::int64_t balance =
      ONCE_TRY(number_from(database, "SELECT balance_cents FROM till WHERE name = 'shop'"));
  if (balance != amount_cents)
    wrong.push_back(
        fmt::format("till by {:.2f}", static_cast<double>(balance - amount_cents) / 100));
  std::int64_t points_off = 0;
  std::map<std::string, std::int64_t> given;
  for (const Row& row : ONCE_TRY(database.query("SELECT customer, points FROM customers")))
    given[text(row[0])] = integer(row[1]);
  for (const auto& [customer, count] : points) given[customer] -= count;
  for (const auto& [customer, off] : given) points_off += off;
  const bool points_wrong =
      std::any_of(given.begin(), given.end(), [](const auto& entry) { return entry.second != 0; });
  if (points_wrong) wrong.push_back(fmt::format("points by {}", points_off));
  std::string all;
  for (const std::string& line : wrong) all += (all.empty() ? "" : ", ") + line;
  return all;
}

// Of each customer, the orders must have been entered in the order in which they were sent. A
// second entry of the same order is a duplicate, and not out of order too.
Result<std::int64_t> count_out_of_order(Database& database) {
  std::map<std::string, std::int64_t> last;
  std::set<std::string> seen;
  std::int64_t count = 0;
  for (const Row& row :
       ONCE_TRY(database.query("SELECT order_id, customer, number FROM orders ORDER BY row"))) {
    if (!seen.insert(text(row[0])).second) continue;
    std::int64_t& number = last[text(row[1])];
    if (integer(row[2]) < number) ++count;
    number = std::max(number, integer(row[2]));
  }
  return count;
}

// Consumers of both topics tell in their journals why they ended, if they could.
Result<std::int64_t> count_refused(const std::string& directory) {
  std::int64_t count = 0;
  for (const JournalPage& page : ONCE_TRY(read_journals(directory)))
    for (const Json& line : page.lines)
      if (line.contains("end") && line["end"] == "fenced") ++count;
  return count;
}

Result<Redeliveries> count_redeliveries(const std::string& directory, const std::string& role) {
  Redeliveries count;
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> processes;
  for (const JournalPage& page : ONCE_TRY(read_journals(directory))) {
    if (page.role != role) continue;
    std::set<std::pair<std::string, std::int64_t>> seen;
    for (const Json& line : page.lines) {
      if (!line.contains("offsets")) continue;
      for (const Json& offset : line["offsets"]) {
        ++count.delivered;
        const std::pair place(line["partition"].get<std::string>(), offset.get<std::int64_t>());
        if (!seen.insert(place).second)
          ++count.on_delivery;
        else if (++processes[place] > 1)
          ++count.on_rebalance;
      }
    }
  }
  return count;
}

Result<std::int64_t> count_parked(const std::string& path) {
  auto store = ONCE_TRY(open_sqlite_store(path));
  std::int64_t count = 0;
  if (store->records() == nullptr) return count;
  for (const std::string_view scope : {orders_scope, points_scope})
    count +=
        static_cast<std::int64_t>(ONCE_TRY(store->records()->parked(scope, -1, 1'000'000)).size());
  return count;
}

}  // namespace

Result<Audit> audit(const DemoSettings& settings, const AuditPlace& place) {
  Audit found;
  std::map<std::string, Order> in_log;
  const auto read = [&](const Delivery& delivery) -> Status {
    const Order order = ONCE_TRY(order_of(delivery.body));
    ++found.in_log;
    if (!in_log.emplace(order.id, order).second) ++found.copies;
    return {};
  };
  ONCE_TRY(for_each_message(settings.directory, orders_topic, read));
  found.sent = static_cast<std::int64_t>(in_log.size());

  const std::string path = settings.directory + "/" + place.database;
  if (place.database == "shop.db") {
    found.parked = ONCE_TRY(count_parked(path));
    found.refused = ONCE_TRY(count_refused(settings.directory));
  }
  Database database = ONCE_TRY(Database::open_to_read(path));
  auto orders = ONCE_TRY(effects_in(database, "orders"));
  auto payments = ONCE_TRY(effects_in(database, "payments"));
  auto points = ONCE_TRY(effects_in(database, "points"));
  found.orders = sum_of(orders);
  found.payments = sum_of(payments);
  found.points = sum_of(points);
  // An order that never got into the log is lost too, so it is the load that is gone through.
  const Load load(settings);
  for (const Order& order : load.orders()) {
    const std::array counts{orders[order.id], payments[order.id], points[order.id]};
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    if (*least == 0 || !in_log.contains(order.id)) ++found.lost;
    if (*most > 1) ++found.duplicated;
  }
  found.out_of_order = ONCE_TRY(count_out_of_order(database));
  found.books = ONCE_TRY(check_books(database, in_log));
  found.redeliveries = ONCE_TRY(count_redeliveries(settings.directory, place.consumer));
  return found;
}

Result<Receipts> read_receipts(const std::string& directory) {
  Receipts receipts;
  for (const JournalPage& page : ONCE_TRY(read_journals(directory))) {
    if (page.role != "gate") continue;
    std::int64_t overtakings = 0;
    for (const Json& line : page.lines) {
      receipts.same_stamp += line.value("duplicates", std::int64_t{0});
      overtakings = line.value("overtakings", overtakings);
    }
    receipts.overtakings += overtakings;
  }
  return receipts;
}

Result<std::map<std::string, std::int64_t>> ends_of(const std::string& directory,
                                                    std::string_view topic) {
  std::map<std::string, std::int64_t> ends;
  const auto read = [&](const Delivery& delivery) -> Status {
    std::int64_t& end = ends[std::string(delivery.partition)];
    end = std::max(end, delivery.offset + 1);
    return {};
  };
  ONCE_TRY(for_each_message(directory, topic, read));
  return ends;
}

}  // namespace once::cli
