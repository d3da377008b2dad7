// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace once::rabbitmq {
namespace {

// RabbitMQ's default up to 3.13; a broker that allows less says so of the message.
constexpr std::size_t message_bytes_max = 128u << 20;
// How often what a full queue has not taken is sent again, at first after `pause_ms`.
constexpr int nack_attempts_max = 6;
constexpr std::int64_t pause_ms = 20;

std::size_t count_of(std::span<const Fate> fates, Fate::Kind kind) {
  return static_cast<std::size_t>(std::count_if(
      fates.begin(), fates.end(), [kind](const Fate& fate) { return fate.kind == kind; }));
}

bool was_nacked(const Fate& fate) { return fate.kind == Fate::Kind::unsent && !fate.why; }

}  // namespace

SinkTraits sink_traits(const Address& address) {
  return {.name = address.where(),
          .recognises = Recognises::none,
          .ordered = false,  // what is delivered again comes later
          .message_bytes_max = message_bytes_max};
}

Result<std::unique_ptr<RabbitSink>> RabbitSink::open(Address address) {
  std::unique_ptr<RabbitSink> sink(new RabbitSink(std::move(address)));
  ONCE_TRY(sink->publisher_.be_ready());
  return sink;
}

Result<Receipt> RabbitSink::append(std::uint32_t partition, const Stamp&,
                                   std::span<const Message> messages) {
  if (partition != 0)
    return fail(Remedy::stop, "partition",
                fmt::format("{} has no partition {}: it has 1", address_.where(), partition));
  if (messages.empty()) return fail(Remedy::stop, "config", "there is nothing to append");
  std::vector<Fate> fates(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (messages[i].body && messages[i].body->size() > message_bytes_max)
      fates[i] = {Fate::Kind::refused,
                  Error{Remedy::park, "too_large",
                        fmt::format("{}: message {} has {} bytes; at most {} are possible",
                                    address_.where(), messages[i].id, messages[i].body->size(),
                                    message_bytes_max),
                        std::nullopt}};
  const std::lock_guard lock(mutex_);
  ONCE_TRY(publisher_.be_ready());
  publisher_.publish(messages, fates);
  for (int i = 0; i < nack_attempts_max && std::any_of(fates.begin(), fates.end(), was_nacked);
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms << i));
    if (!publisher_.be_ready()) break;
    publisher_.publish(messages, fates);
  }
  return receipt_of(fates);
}

Result<Receipt> RabbitSink::receipt_of(std::span<Fate> fates) const {
  const std::size_t accepted = count_of(fates, Fate::Kind::accepted);
  const std::size_t unknown = count_of(fates, Fate::Kind::unknown);
  const std::size_t unsent = count_of(fates, Fate::Kind::unsent);
  Receipt receipt;
  for (std::size_t i = 0; i < fates.size(); ++i)
    if (fates[i].kind == Fate::Kind::refused) receipt.refused.push_back({i, *fates[i].why});
  if (unknown + unsent > 0) {
    const auto heard = std::find_if(fates.begin(), fates.end(), [](const Fate& fate) {
      return fate.kind != Fate::Kind::refused && fate.why;
    });
    Error error = heard != fates.end()
                      ? *heard->why
                      : Error{Remedy::retry, "full",
                              address_.where() +
                                  ": the queue takes no more messages (nack); is it "
                                  "full, or its node away?",
                              std::nullopt};
    if (accepted + unknown > 0) {
      error.remedy = Remedy::recheck;
      error.text += fmt::format(" ({} of {} messages were taken, of {} nobody knows)", accepted,
                                fates.size(), unknown);
    } else if (error.remedy == Remedy::recheck) {
      error.remedy = Remedy::retry;
    }
    return fail(std::move(error));
  }
  // A queue that is gone takes no message at all: none of them is to blame.
  if (accepted == 0 && address_.exchange.empty() && !receipt.refused.empty() &&
      receipt.refused.front().why.tag == "unroutable") {
    Error error = receipt.refused.front().why;
    error.remedy = Remedy::stop;
    error.tag = "missing";
    return fail(std::move(error));
  }
  return receipt;
}

}  // namespace once::rabbitmq
