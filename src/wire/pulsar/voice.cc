// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/voice.h"

#include <fmt/format.h>
#include <once/clock.h>
#include <once/sink.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "model/message_view.h"
#include "wire/pulsar/envelope.h"
#include "wire/pulsar/error.h"

namespace once::pulsar {
namespace {

// Messages whose answers are waited for at once: fewer than what a broker takes of a connection.
constexpr std::uint64_t flight_max = 500;
constexpr std::size_t flight_bytes_max = 4u << 20;
// For how long what an earlier connection has sent is waited for.
constexpr std::int64_t settle_ms = 5'000;
constexpr std::int64_t read_ms = 30'000;
constexpr std::chrono::milliseconds pause(100);

constexpr std::int64_t duplicate_mark = -1;  // ledger and entry of a receipt

// A name has the same number everywhere, and never 0.
std::uint64_t number_of(std::string_view name) {
  Message named;
  named.id = name;
  return digest_of(named) | 1;
}

// Epochs only grow, also where nothing of the last one is to be seen: seconds since 2024.
std::uint32_t epoch_now() {
  constexpr std::int64_t begin_s = 1'704'067'200;
  return static_cast<std::uint32_t>(system_clock().now_ms() / 1000 - begin_s);
}

// Pulsar's sequences begin with 1: some clients take 0 for none.
std::uint64_t to_pulsar(std::uint64_t sequence) { return sequence + 1; }

}  // namespace

Voice::Voice(const Address& address, std::vector<std::string> topics, std::string name)
    : address_(address),
      topics_(std::move(topics)),
      name_(std::move(name)),
      producer_name_("once/" + name_),
      client_(address) {}

// --- Being the producer

// Answers the last sequence that the broker knows; 0: none.
Result<std::int64_t> Voice::attach(Known& known) {
  detach(known);
  const auto connection = ONCE_TRY(client_.connection_for(known.topic));
  const std::uint64_t number = connection->next_number();
  const std::uint64_t request = connection->next_number();
  const Answer answer = ONCE_TRY(
      connection->ask(producer_frame(request, known.topic, number, producer_name_), request,
                      fmt::format("enter {} as the producer {}", known.topic, producer_name_)));
  known.connection = connection;
  known.number = number;
  known.is_closed = false;
  connection->listen_to_producer(
      number, [this, &known](Command& command, std::string&&) { return hear(known, command); });
  return std::max<std::int64_t>(answer.command.last_sequence, 0);
}

void Voice::detach(Known& known) {
  if (!known.connection) return;
  const auto connection = std::move(known.connection);
  known.connection.reset();
  connection->forget_producer(known.number);
  if (connection->is_lost() || known.is_closed) return;
  const std::uint64_t request = connection->next_number();
  (void)connection->ask(close_producer_frame(request, known.number), request, "close a producer",
                        close_ms);
}

bool Voice::is_attached(Known& known) {
  if (!known.connection) return false;
  (void)known.connection->serve({});  // pings, and whether we were closed
  return !known.is_closed && !known.connection->is_lost();
}

// The broker tells of messages before they are durable; those can still fail. So what it tells is
// looked for in the topic.
Status Voice::settle(Known& known, std::int64_t told) {
  const net::Deadline deadline = net::in_ms(settle_ms);
  while (true) {
    const auto found = ONCE_TRY(last_sent(client_, known.topic, producer_name_, told > 0));
    if (found) {
      known.confirmed = found->sequence;
      known.last_place = found->place;
      known.last_digest = found->digest;
      known.epoch = std::max(known.epoch, found->stamp.epoch);
    }
    if (!found || static_cast<std::int64_t>(found->sequence) >= told) {
      known.confirmed = std::max(known.confirmed, static_cast<std::uint64_t>(told));
      return {};
    }
    if (std::chrono::steady_clock::now() >= deadline)
      return fail(Remedy::retry, "away",
                  fmt::format("{}: the broker has not written yet what the producer {} has sent "
                              "before (up to {}, and {} are there)",
                              known.topic, name_, told, found->sequence));
    std::this_thread::sleep_for(pause);
    told = ONCE_TRY(attach(known));
  }
}

Result<Stamp> Voice::enter(std::uint32_t partition) {
  const std::lock_guard lock(mutex_);
  Known& known = partitions_[partition];
  detach(known);
  const std::uint32_t last_epoch = known.epoch;
  known = Known{.topic = topics_[partition], .producer = number_of(name_), .epoch = last_epoch};
  const auto told = attach(known);
  Status settled = told ? settle(known, *told) : fail(told.error());
  if (!settled) {
    detach(known);
    partitions_.erase(partition);
    return fail(settled.error());
  }
  known.recognised = *told > 0;
  known.epoch = std::max(known.epoch + 1, epoch_now());
  known.attempted = known.confirmed;
  return Stamp{known.producer, known.epoch, known.confirmed};
}

Result<std::uint64_t> Voice::sent(std::uint32_t partition) {
  const std::lock_guard lock(mutex_);
  const auto entered = partitions_.find(partition);
  if (entered != partitions_.end()) return entered->second.confirmed;
  const auto found = ONCE_TRY(last_sent(client_, topics_[partition], producer_name_, true));
  return found ? found->sequence : 0;
}

Result<std::optional<std::uint64_t>> Voice::last_digest(std::uint32_t partition) {
  const std::lock_guard lock(mutex_);
  const auto entered = partitions_.find(partition);
  if (entered != partitions_.end()) return entered->second.last_digest;
  const auto found = ONCE_TRY(last_sent(client_, topics_[partition], producer_name_, true));
  if (!found) return std::nullopt;
  return found->digest;
}

// After a lost connection: what of ours is there, and whether it is all ours. Another process with
// our name has another epoch.
Status Voice::reattach(Known& known) {
  const std::int64_t told = ONCE_TRY(attach(known));
  std::optional<Sent> seen;
  bool is_foreign = false;
  const Place from = known.last_place.ledger < 0
                         ? earliest_place
                         : Place{known.last_place.ledger, known.last_place.entry - 1};
  const bool at_end =
      ONCE_TRY(read_to_end(client_, known.topic, from, read_ms, [&](const Received& received) {
        if (received.entry->producer() != producer_name_) return;
        const Delivery delivery = received.entry->delivery(received.entry->size() - 1);
        seen = Sent{received.entry->sequence(), received.place, delivery.stamp,
                    digest_of(message_of(delivery))};
        const bool is_new = seen->sequence > known.confirmed;
        is_foreign = is_foreign || (is_new && delivery.stamp.epoch != known.epoch);
      }));
  if (!at_end)
    return fail(Remedy::retry, "away",
                fmt::format("{}: what was sent since the connection was lost could not be read in "
                            "{} s",
                            known.topic, read_ms / 1000));
  if (is_foreign || told > static_cast<std::int64_t>(known.attempted)) {
    detach(known);
    return fail(Remedy::stop, "fenced",
                fmt::format("{}: another process has sent as the producer {}", known.topic, name_));
  }
  ONCE_TRY(check_still_there(known, told, seen));
  if (seen && seen->sequence > known.confirmed) {
    known.confirmed = seen->sequence;
    known.last_place = seen->place;
    known.last_digest = seen->digest;
  }
  return {};
}

Status Voice::check_still_there(Known& known, std::int64_t told,
                                const std::optional<Sent>& seen) const {
  if (told >= static_cast<std::int64_t>(known.confirmed)) return {};
  // The broker has forgotten us: that is only an inactive producer if its message is there.
  if (seen && seen->sequence >= known.confirmed) return {};
  return fail(Remedy::stop, "gone",
              fmt::format("{}: the broker knows nothing of the {} messages that the producer {} "
                          "has sent: the topic was deleted and created again or restored, or its "
                          "deduplication was switched off",
                          known.topic, known.confirmed, name_));
}

// --- Sending

Status Voice::check_stamp(std::uint32_t partition, const Known& known, const Stamp& stamp) const {
  if (stamp.epoch != known.epoch)
    return fail(Remedy::stop, "fenced",
                fmt::format("{}: the producer {} has entered partition {} again, with epoch {}; "
                            "this is epoch {}",
                            address_.where(), name_, partition, known.epoch, stamp.epoch));
  if (stamp.sequence <= known.confirmed) return {};
  return fail(Remedy::retry, "gap",
              fmt::format("{}: the producer {} sends message {} to partition {}, but message {} "
                          "has not come yet",
                          address_.where(), name_, stamp.sequence, partition, known.confirmed));
}

Result<Receipt> Voice::append(std::uint32_t partition, const Stamp& stamp,
                              std::span<const Message> messages) {
  const std::lock_guard lock(mutex_);
  const auto found = partitions_.find(partition);
  if (found == partitions_.end() || found->second.producer != stamp.producer)
    return fail(Remedy::stop, "unknown",
                fmt::format("{}: the producer {} has not entered partition {} with this stamp",
                            address_.where(), name_, partition));
  Known& known = found->second;
  if (stamp.epoch == known.epoch && !is_attached(known)) ONCE_TRY(reattach(known));
  ONCE_TRY(check_stamp(partition, known, stamp));
  const std::size_t done = std::min<std::size_t>(messages.size(), known.confirmed - stamp.sequence);
  Receipt receipt{.offset = -1, .duplicates = static_cast<std::uint32_t>(done)};
  if (done < messages.size()) {
    Stamp first = stamp;
    first.sequence += done;
    ONCE_TRY(check_messages(known, first, messages.subspan(done)));
    ONCE_TRY(send(known, first, messages.subspan(done)));
    receipt.duplicates += flight_.duplicates;
    if (done == 0 && flight_.duplicates == 0) {
      known.first_appended = stamp.sequence;
      known.first_offset = flight_.first_offset;
    }
  }
  if (stamp.sequence == known.first_appended) receipt.offset = known.first_offset;
  return receipt;
}

std::string Voice::encoded(const Known& known, const Stamp& stamp, const Message& message,
                           std::string& metadata) const {
  const std::uint64_t sequence = to_pulsar(stamp.sequence);
  metadata = encode_metadata(message, stamp, producer_name_, sequence, system_clock().now_ms());
  return send_frame({known.number, sequence, metadata, view_of(message.body)});
}

// Before anything is sent: nothing must be there of messages of which one is refused.
Status Voice::check_messages(const Known& known, const Stamp& first,
                             std::span<const Message> messages) const {
  const std::size_t most = known.connection->message_bytes_max();
  for (const Message& message : messages) {
    if (!has_text_names(message))
      return fail(Remedy::park, "refused",
                  known.topic + ": the name of a header is not UTF-8, which Pulsar cannot carry");
    std::size_t size = message.body.value_or("").size();
    if (size + (16u << 10) >= most / 2)  // near the limit it is worth to know exactly
      size += encode_metadata(message, first, producer_name_, first.sequence, 0).size();
    if (size > most)
      return fail(Remedy::park, "too_large",
                  fmt::format("{}: a message takes {} bytes, and the broker takes {} "
                              "(maxMessageSize)",
                              known.topic, size, most));
  }
  return {};
}

Status Voice::send(Known& known, const Stamp& first, std::span<const Message> messages) {
  flight_ = {.next = first.sequence, .resent_end = known.attempted};
  const Status pushed = push(known, first, messages);
  ONCE_TRY(judge(known, pushed, first.sequence));
  known.last_digest = digest_of(messages.back());
  return prove(known);
}

// Sends, and waits for all answers.
Status Voice::push(Known& known, const Stamp& first, std::span<const Message> messages) {
  const auto connection = known.connection;
  const std::uint64_t end = first.sequence + messages.size();
  Stamp stamp = first;
  std::string metadata;
  std::string frames;
  std::size_t flying_bytes = 0;
  while (flight_.next < end && !flight_.failure) {
    const std::uint64_t flying = stamp.sequence - flight_.next;
    if (flying == 0) flying_bytes = 0;
    const bool may_send =
        stamp.sequence < end && flying < flight_max && flying_bytes < flight_bytes_max;
    if (may_send) {
      frames.clear();
      while (stamp.sequence < end && frames.size() < (256u << 10) &&
             stamp.sequence - flight_.next < flight_max) {
        frames += encoded(known, stamp, messages[stamp.sequence - first.sequence], metadata);
        ++stamp.sequence;
      }
      flying_bytes += frames.size();
      known.attempted = std::max(known.attempted, stamp.sequence);
      ONCE_TRY(connection->send(frames));
      ONCE_TRY(connection->serve({}));
    } else {
      ONCE_TRY(await_answer(known));
    }
    if (known.is_closed)
      return fail(Remedy::recheck, "lost",
                  known.topic + ": the broker has closed the producer while it sent");
  }
  return {};
}

// Other things come, too.
Status Voice::await_answer(Known& known) {
  const std::uint64_t before = flight_.next;
  const net::Deadline deadline = net::in_ms(answer_ms);
  while (flight_.next == before && !flight_.failure && !known.is_closed) {
    if (std::chrono::steady_clock::now() >= deadline)
      return fail(Remedy::recheck, "lost",
                  fmt::format("{}: the broker has not answered in {} s what has become of "
                              "message {}",
                              known.topic, answer_ms / 1000, flight_.next));
    ONCE_TRY(known.connection->serve(deadline));
  }
  return {};
}

Status Voice::hear(Known& known, const Command& command) {
  if (command.type == Type::close_producer) known.is_closed = true;
  if (command.type == Type::send_error && !flight_.failure) {
    flight_.failure = error_from_pulsar(command.error, known.topic, "send", command.text);
    if (static_cast<ServerError>(command.error) == ServerError::checksum)
      flight_.failure->remedy = Remedy::retry;
  }
  if (command.type == Type::send_receipt) hear_receipt(known, command);
  return {};
}

void Voice::hear_receipt(Known& known, const Command& command) {
  if (command.sequence != to_pulsar(flight_.next)) {
    // A receipt behind one that failed: the broker will never take what is missing before it.
    const bool is_late = command.sequence < to_pulsar(flight_.next);
    flight_.is_broken = flight_.is_broken || !is_late;
    return;
  }
  const Place place = command.place.value_or(Place{});
  if (flight_.failure) {
    flight_.is_broken = true;
    return;
  }
  if (place.ledger == duplicate_mark && place.entry == duplicate_mark) {
    if (flight_.next >= flight_.resent_end) {
      flight_.failure = Error{Remedy::stop, "fenced",
                              fmt::format("{}: another process has sent message {} as the "
                                          "producer {}",
                                          known.topic, flight_.next, name_),
                              std::nullopt};
      return;
    }
    ++flight_.duplicates;
  } else {
    known.last_place = place;
    if (flight_.first_offset < 0) flight_.first_offset = offset_of(place).value_or(-1);
  }
  known.confirmed = ++flight_.next;
}

// What the caller may rely on after an error: whether something was appended.
Status Voice::judge(Known& known, const Status& pushed, std::uint64_t first) {
  if (pushed && !flight_.failure) return {};
  Error error = flight_.failure ? *flight_.failure : pushed.error();
  // Answers that are on their way say whether later messages were taken.
  if (flight_.failure && known.connection && !known.connection->is_lost() && !known.is_closed) {
    const net::Deadline deadline = net::in_ms(1'000);
    while (std::chrono::steady_clock::now() < deadline && !flight_.is_broken &&
           known.connection->serve(net::in_ms(100))) {
    }
  }
  if (flight_.is_broken)
    error = {Remedy::stop, "broken",
             fmt::format("{}: message {} of the producer {} was refused ({}), and later ones were "
                         "taken: the broker would take it for a duplicate now. Send it under "
                         "another name",
                         known.topic, flight_.next, name_, error.text),
             std::nullopt};
  detach(known);
  if (error.remedy == Remedy::stop) return fail(std::move(error));
  // Refused, nothing before it in this call, and nothing of an unknown outcome behind it.
  const bool is_certain = flight_.failure.has_value() && known.confirmed == first &&
                          flight_.resent_end <= first && known.attempted == first + 1;
  if (!is_certain) {
    error.remedy = Remedy::recheck;
    error.tag = "lost";
  }
  return fail(std::move(error));
}

// Where deduplication is off, resends would be there twice and nobody would be told. Found out with
// the first messages of a producer that the broker does not know.
Status Voice::prove(Known& known) {
  if (known.recognised) return {};
  const std::int64_t told = ONCE_TRY(attach(known));
  if (told < static_cast<std::int64_t>(known.confirmed)) {
    detach(known);
    return fail(Remedy::stop, "config",
                fmt::format("{}: the broker does not remember what was sent: its deduplication is "
                            "off, and a resend would be there twice. Switch it on "
                            "(brokerDeduplicationEnabled=true, or `pulsar-admin namespaces "
                            "set-deduplication {} --enable`). The messages of this call are there",
                            known.topic, address_.name_space));
  }
  known.recognised = true;
  return {};
}

}  // namespace once::pulsar
