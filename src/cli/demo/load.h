// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace once::cli {

// What `once demo` was asked for; the same in the parent and in its children.
struct DemoSettings {
  std::string directory;
  std::uint64_t seed = 1;
  std::int64_t messages = 500;
  double duplicates = 0.1;
  std::int64_t kills = 30;
  std::int64_t number = 0;  // of the child that has these settings; 0 is the parent
};

// An order of the shop.
struct Order {
  std::string id;
  std::string customer;
  std::int64_t number = 0;  // counts the orders of this customer from 1: their order is checked
  std::string item;
  std::int64_t quantity = 0;
  std::int64_t amount_cents = 0;

  bool operator==(const Order&) const = default;
};

std::string body_of(const Order& order);

// Everything that the shop's gate sends, in order: a pure function of the settings, so that a
// producer that was killed sends the same again.
class Load {
 public:
  explicit Load(const DemoSettings& settings);

  const std::vector<Order>& orders() const { return orders_; }
  // Indexes of orders; an order that comes here twice is sent twice, as two messages.
  const std::vector<std::size_t>& sends() const { return sends_; }
  Message message(std::size_t send) const;

 private:
  std::vector<Order> orders_;
  std::vector<std::size_t> sends_;
};

// When and where the parent strikes, in parts of the load (0 to 1) from the start.
struct Strike {
  double at = 0;
  std::string role;
  std::int64_t delay_us = 0;  // after the load has come that far
};
std::vector<Strike> plan_kills(const DemoSettings& settings);
std::vector<Strike> plan_owner_changes(const DemoSettings& settings);

// How many messages the gate sends in a second, so that there is work while the kills last.
double sends_per_second(const DemoSettings& settings);

inline constexpr std::int64_t stock_at_start = 1'000'000;
const std::vector<std::string>& shop_items();

// One point for each whole unit of money.
inline std::int64_t points_for(std::int64_t amount_cents) { return amount_cents / 100; }

}  // namespace once::cli
