// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>

#include "cli/output.h"

namespace once::cli {
namespace {

// The engine is the same on every machine, the standard distributions are not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(limit));
  }
  double fraction() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

// Progress is seen right after a commit; a strike comes up to this much later, so that it falls
// anywhere in the work on the next messages.
constexpr std::int64_t delay_us_max = 60'000;

constexpr std::int64_t first_timestamp_ms = 1'750'000'000'000;

std::vector<double> spread(Dice& dice, std::int64_t count) {
  std::vector<double> fractions;
  for (std::int64_t i = 0; i < count; ++i) fractions.push_back(0.02 + 0.93 * dice.fraction());
  std::sort(fractions.begin(), fractions.end());
  return fractions;
}

}  // namespace

std::string body_of(const Order& order) {
  const Json json = {{"order_id", order.id},       {"customer", order.customer},
                     {"number", order.number},     {"item", order.item},
                     {"quantity", order.quantity}, {"amount_cents", order.amount_cents}};
  return json.dump();
}

const std::vector<std::string>& shop_items() {
  static const std::vector<std::string> items{"apple", "bread", "candle", "drum", "egg"};
  return items;
}

Load::Load(const DemoSettings& settings) {
  Dice dice(settings.seed);
  const std::int64_t customers = std::clamp<std::int64_t>(settings.messages / 20, 1, 100);
  std::map<std::string, std::int64_t> numbers;
  std::multimap<std::size_t, std::size_t> copies;  // after which order, which one again
  for (std::int64_t i = 0; i < settings.messages; ++i) {
    Order order;
    order.id = fmt::format("order-{:06}", i + 1);
    order.customer = fmt::format("customer-{:03}", dice.below(customers) + 1);
    order.number = ++numbers[order.customer];
    order.item = shop_items()[static_cast<std::size_t>(dice.below(5))];
    order.quantity = dice.below(3) + 1;
    order.amount_cents = order.quantity * (100 + dice.below(900));
    const auto index = static_cast<std::size_t>(i);
    if (dice.fraction() < settings.duplicates)
      copies.emplace(index + static_cast<std::size_t>(dice.below(200)), index);
    orders_.push_back(std::move(order));
    sends_.push_back(index);
    const auto [first, last] = copies.equal_range(index);
    for (auto copy = first; copy != last; ++copy) sends_.push_back(copy->second);
    copies.erase(first, last);
  }
  for (const auto& [after, index] : copies) sends_.push_back(index);
}

Message Load::message(std::size_t send) const {
  const std::size_t index = sends_[send];
  const Order& order = orders_[index];
  Message message;
  message.id = order.id;
  message.key = order.customer;
  message.body = body_of(order);
  message.timestamp_ms = first_timestamp_ms + static_cast<std::int64_t>(index);
  return message;
}

std::vector<Strike> plan_kills(const DemoSettings& settings) {
  static const std::vector<std::string> roles{"orders", "gate",   "orders", "relay",
                                              "orders", "points", "points"};
  Dice dice(settings.seed ^ 0x6b696c6cULL);
  std::vector<Strike> strikes;
  for (const double at : spread(dice, settings.kills)) {
    const auto role = static_cast<std::size_t>(dice.below(static_cast<std::int64_t>(roles.size())));
    strikes.push_back({at, roles[role], dice.below(delay_us_max)});
  }
  return strikes;
}

std::vector<Strike> plan_owner_changes(const DemoSettings& settings) {
  if (settings.kills == 0) return {};
  Dice dice(settings.seed ^ 0x6f776e6572ULL);
  std::vector<Strike> strikes;
  for (const double at : spread(dice, std::clamp<std::int64_t>(settings.kills / 6, 1, 20)))
    strikes.push_back({at, dice.below(3) == 0 ? "points" : "orders", dice.below(delay_us_max)});
  return strikes;
}

double sends_per_second(const DemoSettings& settings) {
  const double messages = static_cast<double>(settings.messages) * (1 + settings.duplicates);
  const double seconds =
      std::max({messages / 1000.0, static_cast<double>(settings.kills) * 0.15, 0.2});
  return messages / seconds;
}

}  // namespace once::cli
