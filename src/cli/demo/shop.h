// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/handler.h>
#include <once/message.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/demo/load.h"

namespace once::cli {

// The shop's business, the same for Once and for the naive recipe: an order is entered, takes
// stock and is paid; a payment gives points. The tables have no unique keys on order ids, so that
// whatever is done twice can be seen in them.

inline constexpr std::string_view orders_scope = "shop.orders";
inline constexpr std::string_view points_scope = "shop.points";
inline constexpr std::string_view orders_topic = "orders";
inline constexpr std::string_view payments_topic = "payments";
inline constexpr std::string_view naive_payments_topic = "naive-payments";

// A statement with its values, ready for any connection.
struct Step {
  std::string_view statement;
  std::vector<Value> values;  // they refer to the order
};

// CREATE TABLE … and the first rows, in order.
std::vector<std::string> shop_schema();

Result<Order> order_of(std::string_view body);

// What an order does, and what its payment does.
std::vector<Step> steps_of_order(const Order& order);
std::vector<Step> steps_of_payment(const Order& order);

// The message that tells the others that an order is paid.
Message paid_message(const Order& order);

// The handlers of the two pipelines.
Handler take_orders();
Handler give_points();

}  // namespace once::cli
