// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/inbox.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "wire/mqtt/error.h"

namespace once::mqtt {
namespace {

// What waits here while the pipeline is full; the rest waits at the broker.
constexpr std::size_t ready_count_max = 10'000;
constexpr std::size_t ready_bytes_max = 64u << 20;

}  // namespace

Inbox::Inbox(Version version, bool own_headers_only, std::string partition)
    : version_(version), own_headers_only_(own_headers_only), partition_(std::move(partition)) {}

void Inbox::connected(bool session_present) {
  ++session_;
  if (!session_present) received_.clear();
}

void Inbox::disconnected() {
  answers_.clear();
  unanswered_.clear();
  // Nobody can send a message of QoS 0 again.
  std::deque<Entry> kept;
  for (Entry& one : entries_)
    if (qos(one) == 0 && one.state != State::done) kept.push_back(std::move(one));
  first_ += entries_.size();
  entries_ = std::move(kept);
  ready_.clear();
  later_.clear();
  out_.clear();
  ready_bytes_ = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& one = entries_[i];
    if (one.state == State::out) {
      out_.emplace(one.tag, first_ + i);
    } else {
      ready_.push_back(first_ + i);
      ready_bytes_ += one.message->frame.body.size();
    }
  }
}

void Inbox::answer(PacketType type, std::uint16_t packet, std::uint8_t reason) {
  encode(Answer{.type = type, .packet = packet, .reason = reason}, version_, answers_);
}

Status Inbox::arrived(Frame frame, std::int64_t now_ms) {
  auto message = std::make_shared<Incoming>();
  message->frame = std::move(frame);
  const Packet packet = ONCE_TRY(decode(message->frame, version_));
  message->publish = std::get<Publish>(packet);
  const Publish& publish = message->publish;
  if (publish.qos > 0) {
    // It was handled, and the answer got lost.
    if (publish.qos == 2 && received_.contains(publish.packet)) {
      answer(PacketType::pubrec, publish.packet);
      return {};
    }
    // Sent again on the same connection, as servers of 3.1.1 may do: it is under way.
    if (!unanswered_.insert(publish.packet).second) return {};
  }
  message->open(own_headers_only_);
  if (message->timestamp_ms == 0) message->timestamp_ms = now_ms;
  ready_.push_back(first_ + entries_.size());
  ready_bytes_ += message->frame.body.size();
  entries_.push_back({.message = message,
                      .state = State::ready,
                      .attempt = publish.duplicate ? 2u : 1u,
                      .session = session_});
  return {};
}

void Inbox::released(std::uint16_t packet) {
  const bool known = received_.erase(packet) > 0;
  answer(PacketType::pubcomp, packet, known ? std::uint8_t{0} : packet_not_found);
}

void Inbox::find_due(std::int64_t now_ms) {
  while (!later_.empty() && later_.begin()->first <= now_ms) {
    const Number number = later_.begin()->second;
    ready_.push_back(number);
    ready_bytes_ += entry(number).message->frame.body.size();
    later_.erase(later_.begin());
  }
}

std::size_t Inbox::ready(std::int64_t now_ms) {
  find_due(now_ms);
  return ready_.size();
}

bool Inbox::has_room() const {
  return ready_.size() < ready_count_max && ready_bytes_ < ready_bytes_max;
}

void Inbox::take(std::size_t count_max, std::int64_t now_ms, Batch& batch) {
  find_due(now_ms);
  const auto memory = std::make_shared<std::vector<std::shared_ptr<const Incoming>>>();
  while (!ready_.empty() && memory->size() < count_max) {
    const Number number = ready_.front();
    ready_.pop_front();
    Entry& one = entry(number);
    ready_bytes_ -= one.message->frame.body.size();
    one.state = State::out;
    one.tag = ++last_tag_;
    out_.emplace(one.tag, number);
    memory->push_back(one.message);
    Delivery& delivery = batch.deliveries.emplace_back();
    delivery.partition = partition_;
    delivery.offset = one.tag;
    delivery.session = one.session;
    delivery.attempt = one.attempt;
    delivery.id = one.message->id;
    delivery.key = one.message->key;
    delivery.body = one.message->body;
    delivery.headers = one.message->headers;
    delivery.timestamp_ms = one.message->timestamp_ms;
  }
  batch.partition = partition_;
  batch.memory = memory;
}

Inbox::Entry* Inbox::find(const Delivery& delivery) {
  const auto found = out_.find(delivery.offset);
  if (found == out_.end()) return nullptr;
  Entry& one = entry(found->second);
  return one.session == delivery.session ? &one : nullptr;
}

void Inbox::ack(const Delivery& delivery) {
  Entry* const one = find(delivery);
  if (one == nullptr) return;
  one->state = State::done;
  out_.erase(delivery.offset);
  answer_in_order();
}

void Inbox::release(const Delivery& delivery, std::int64_t ready_ms) {
  Entry* const one = find(delivery);
  if (one == nullptr) return;
  one->state = State::ready;
  ++one->attempt;
  later_.emplace(ready_ms, out_.at(delivery.offset));
  out_.erase(delivery.offset);
}

void Inbox::answer_in_order() {
  while (!entries_.empty() && entries_.front().state == State::done) {
    const Publish& publish = entries_.front().message->publish;
    if (publish.qos == 1) {
      answer(PacketType::puback, publish.packet);
    } else if (publish.qos == 2) {
      answer(PacketType::pubrec, publish.packet);
      received_.insert(publish.packet);
    }
    unanswered_.erase(publish.packet);
    entries_.pop_front();
    ++first_;
  }
}

std::string Inbox::take_answers() { return std::exchange(answers_, {}); }

}  // namespace once::mqtt
