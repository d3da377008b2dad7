// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/topics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "wire/rabbitmq/connection.h"

namespace once::rabbitmq {
namespace {

struct Argument {
  std::string_view setting;
  std::string_view name;
  bool is_number;
};
constexpr std::array<Argument, 6> arguments{{
    {"type", "x-queue-type", false},
    {"max_length", "x-max-length", true},
    {"overflow", "x-overflow", false},
    {"delivery_limit", "x-delivery-limit", true},
    {"dead_letter_exchange", "x-dead-letter-exchange", false},
    {"dead_letter_routing_key", "x-dead-letter-routing-key", false},
}};

tl::unexpected<Error> refuse(const std::string& text) { return fail(Remedy::stop, "config", text); }

std::string setting_of(const Address& address, std::string_view name, std::string_view otherwise) {
  for (const auto& [known, value] : address.settings)
    if (known == name) return value;
  return std::string(otherwise);
}

Status check(const Address& address, const TopicRequest& request) {
  if (address.queue.empty() && address.exchange.empty())
    return fail(Remedy::stop, "url",
                fmt::format("{} names neither a queue nor an exchange; write {}?queue=NAME",
                            address.where(), address.server()));
  if (request.partitions != 1) return refuse("a queue of RabbitMQ has one partition");
  if (request.gaps.value_or(GapPolicy::refuse) != GapPolicy::refuse)
    return refuse("a queue of RabbitMQ knows no gaps");
  const bool is_stream = setting_of(address, "type", "quorum") == "stream";
  if (request.segment_bytes_max && !is_stream)
    return refuse("a queue of RabbitMQ has no segments; a stream has (type=stream)");
  if (address.queue.empty() && (request.retention_ms || request.retention_bytes))
    return refuse("an exchange keeps nothing; a queue has a retention");
  return {};
}

Status add_settings(const Address& address, Table& table) {
  for (const Argument& argument : arguments) {
    const auto found =
        std::find_if(address.settings.begin(), address.settings.end(),
                     [&](const auto& setting) { return setting.first == argument.setting; });
    if (found == address.settings.end()) {
      // The copies of its messages are on a majority of the nodes before they are confirmed.
      if (argument.setting == "type") table.add_text(argument.name, "quorum");
      continue;
    }
    if (!argument.is_number) {
      table.add_text(argument.name, found->second);
      continue;
    }
    std::int64_t number = 0;
    const char* end = found->second.data() + found->second.size();
    const auto read = std::from_chars(found->second.data(), end, number);
    if (read.ec != std::errc() || read.ptr != end || number < 0)
      return refuse(fmt::format("{} is \"{}\", but must be a number", found->first, found->second));
    table.add_number(argument.name, number);
  }
  return {};
}

Status declare_queue(Connection& connection, const Address& address, const TopicRequest& request) {
  Table table;
  ONCE_TRY(add_settings(address, table));
  const bool is_stream = setting_of(address, "type", "quorum") == "stream";
  const auto is_set = [](const std::optional<std::int64_t>& limit) {
    return limit.value_or(-1) >= 0;
  };
  const std::string age =
      fmt::format("{}s", (request.retention_ms.value_or(0) + 999) / 1000);  // whole seconds
  if (is_set(request.retention_ms) && is_stream) table.add_text("x-max-age", age);
  if (is_set(request.retention_ms) && !is_stream)
    table.add_number("x-message-ttl", *request.retention_ms);
  if (is_set(request.retention_bytes))
    table.add_number("x-max-length-bytes", *request.retention_bytes);
  if (request.segment_bytes_max)
    table.add_number("x-stream-max-segment-size-bytes", *request.segment_bytes_max);
  amqp_queue_declare(connection.get(), Connection::channel, bytes_of(address.queue), 0, 1, 0, 0,
                     table.get());
  return connection.answered("create the queue " + address.queue);
}

Status declare_exchange(Connection& connection, const Address& address) {
  const std::string type = setting_of(address, "exchange_type", "direct");
  amqp_exchange_declare(connection.get(), Connection::channel, bytes_of(address.exchange),
                        bytes_of(type), 0, 1, 0, 0, amqp_empty_table);
  ONCE_TRY(connection.answered("create the exchange " + address.exchange));
  if (address.queue.empty()) return {};
  // What suits the kind of exchange: all messages, or those that are meant for the queue.
  std::string key = type == "topic" ? "#" : type == "direct" ? address.queue : "";
  if (address.has_routing_key) key = address.routing_key;
  amqp_queue_bind(connection.get(), Connection::channel, bytes_of(address.queue),
                  bytes_of(address.exchange), bytes_of(key), amqp_empty_table);
  return connection.answered(
      fmt::format("bind the queue {} to the exchange {}", address.queue, address.exchange));
}

Result<std::unique_ptr<Connection>> connect(const Address& address) {
  return Connection::open(address, "topic");
}

TopicReport report_of(const Address& address, const amqp_queue_declare_ok_t& queue) {
  TopicReport report{.name = address.queue};
  report.more.emplace_back("messages", fmt::format("{}", queue.message_count));
  report.more.emplace_back("consumers", fmt::format("{}", queue.consumer_count));
  report.partitions.push_back({.end_offset = queue.message_count});
  return report;
}

class RabbitTopics final : public Topics {
 public:
  Status create(std::string_view url, const TopicRequest& request) const override {
    const Address address = ONCE_TRY(Address::parse(url, Role::topic));
    ONCE_TRY(check(address, request));
    const auto connection = ONCE_TRY(connect(address));
    if (!address.queue.empty()) ONCE_TRY(declare_queue(*connection, address, request));
    if (!address.exchange.empty()) return declare_exchange(*connection, address);
    return {};
  }

  // The queue; or the exchange, if no queue is named.
  Status remove(std::string_view url) const override {
    const Address address = ONCE_TRY(Address::parse(url, Role::topic));
    ONCE_TRY(check(address, {}));
    const auto connection = ONCE_TRY(connect(address));
    if (!address.queue.empty()) {
      amqp_queue_delete(connection->get(), Connection::channel, bytes_of(address.queue), 0, 0);
      return connection->answered("delete the queue " + address.queue);
    }
    amqp_exchange_delete(connection->get(), Connection::channel, bytes_of(address.exchange), 0);
    return connection->answered("delete the exchange " + address.exchange);
  }

  Result<TopicReport> describe(std::string_view url) const override {
    const Address address = ONCE_TRY(Address::parse(url, Role::topic));
    ONCE_TRY(check(address, {}));
    const auto connection = ONCE_TRY(connect(address));
    if (address.queue.empty()) {
      amqp_exchange_declare(connection->get(), Connection::channel, bytes_of(address.exchange),
                            amqp_cstring_bytes("direct"), 1, 0, 0, 0, amqp_empty_table);
      ONCE_TRY(connection->answered("find the exchange " + address.exchange));
      return TopicReport{.name = address.exchange, .more = {{"exchange", "yes"}}};
    }
    const amqp_queue_declare_ok_t* queue =
        amqp_queue_declare(connection->get(), Connection::channel, bytes_of(address.queue), 1, 0, 0,
                           0, amqp_empty_table);
    ONCE_TRY(connection->answered("find the queue " + address.queue));
    return report_of(address, *queue);
  }

  Result<std::vector<TopicReport>> list(std::string_view broker_url) const override {
    const Address address = ONCE_TRY(Address::parse(broker_url, Role::topic));
    return refuse(fmt::format(
        "{}: RabbitMQ does not list its queues to clients; `rabbitmqctl list_queues` does, and "
        "`once topic show` shows one",
        address.server()));
  }
};

}  // namespace

const Topics& topics() {
  static const RabbitTopics topics;
  return topics;
}

}  // namespace once::rabbitmq
