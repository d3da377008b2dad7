// SPDX-License-Identifier: Apache-2.0
#include "simulation/sender.h"

#include <algorithm>

namespace once::simulation {
namespace {

constexpr std::int64_t first_birth_ms = 1'700'000'000'000;
constexpr std::size_t window = 5;  // how far a pipelined sender runs ahead

}  // namespace

Sender::Sender(Context& context, Network& network, RemoteSink& sink, std::string name, Kind kind,
               std::vector<Message> messages)
    : context_(context),
      network_(network),
      sink_(sink),
      name_(std::move(name)),
      kind_(kind),
      messages_(std::move(messages)) {
  if (kind_ != Kind::pipelined) return;
  const std::uint32_t partitions = sink_.partitions().value();
  lines_.resize(partitions);
  for (std::size_t i = 0; i < messages_.size(); ++i)
    lines_[partition_of(messages_[i], partitions)].messages.push_back(i);
  for (Line& line : lines_) line.acknowledged.resize(line.messages.size());
}

void Sender::crash() {
  context_.trace.note("{} crashes", name_);
  producer_.reset();
  for (Line& line : lines_) line.stamp.reset();
}

bool Sender::done() const {
  if (kind_ != Kind::pipelined) return acknowledged_ >= messages_.size();
  return std::all_of(lines_.begin(), lines_.end(), [](const Line& line) {
    return std::find(line.acknowledged.begin(), line.acknowledged.end(), false) ==
           line.acknowledged.end();
  });
}

std::vector<std::string> Sender::acknowledged_ids() const {
  std::vector<std::string> ids;
  if (kind_ != Kind::pipelined)
    for (std::size_t i = 0; i < acknowledged_; ++i) ids.push_back(messages_[i].id);
  for (const Line& line : lines_)
    for (std::size_t i = 0; i < line.messages.size(); ++i)
      if (line.acknowledged[i]) ids.push_back(messages_[line.messages[i]].id);
  return ids;
}

// A message is born when it is first sent, and never again.
void Sender::give_birth(Message& message) {
  if (message.timestamp_ms != 0) return;
  context_.youngest_birth_ms = std::max(context_.youngest_birth_ms, first_birth_ms) + 5;
  message.timestamp_ms = context_.youngest_birth_ms;
}

void Sender::must_start_again(const Error& error) {
  if (error.remedy != Remedy::stop && error.remedy != Remedy::park) return;
  context_.trace.reached("sender must start again: " + error.tag);
  crash();
}

void Sender::step() {
  if (kind_ == Kind::pipelined)
    send_pipelined();
  else if (producer_)
    send_through_producer();
  else
    open();
}

void Sender::open() {
  ProducerOptions options;
  options.name = name_;
  options.replay = kind_ == Kind::replaying;
  options.attempts_max = 1;
  auto opened = Producer::open(sink_, options, context_.clock);
  context_.trace.note("{} opens: {}", name_, opened ? "ok" : opened.error().tag.c_str());
  if (!opened) return;
  producer_ = std::move(*opened);
  next_ = kind_ == Kind::replaying ? 0 : acknowledged_;
}

void Sender::send_through_producer() {
  const std::size_t count = std::min(context_.random.below(4), messages_.size() - next_);
  const auto some = std::span(messages_).subspan(next_, count);
  for (Message& message : some) give_birth(message);
  next_ += count;
  const auto report = producer_->send(some);
  context_.trace.note("{} sends {}: {}", name_, count, report ? "ok" : report.error().tag.c_str());
  if (!report) return must_start_again(report.error());
  acknowledged_ = std::max(acknowledged_, next_);
  if (report->duplicates > 0) context_.trace.reached("duplicate answered");
}

void Sender::send_pipelined() {
  const std::size_t index = context_.random.below(lines_.size());
  Line& line = lines_[index];
  const PartitionName where{"orders", static_cast<std::uint32_t>(index)};
  if (!line.stamp) {
    if (auto stamp = network_.enter(where, name_)) line.stamp = *stamp;
    return;
  }
  const auto first = static_cast<std::size_t>(
      std::find(line.acknowledged.begin(), line.acknowledged.end(), false) -
      line.acknowledged.begin());
  if (first == line.messages.size()) return;
  const std::size_t begin = std::min(line.messages.size() - 1,
                                     first + (context_.calm ? 0 : context_.random.below(window)));
  const std::size_t end = std::min(line.messages.size(), begin + 1 + context_.random.below(3));
  std::vector<Message> batch;
  for (std::size_t i = begin; i < end; ++i) {
    give_birth(messages_[line.messages[i]]);
    batch.push_back(messages_[line.messages[i]]);
  }
  Stamp stamp = *line.stamp;
  stamp.sequence = begin;
  const auto receipt = network_.append(where, stamp, batch);
  context_.trace.note("{} sends {}..{}: {}", name_, begin, end,
                      receipt ? "ok" : receipt.error().tag.c_str());
  if (!receipt) {
    if (receipt.error().tag == "gap") context_.trace.reached("gap refused");
    return must_start_again(receipt.error());
  }
  if (receipt->duplicates > 0)
    context_.trace.reached(receipt->duplicates < batch.size() ? "mixed batch"
                                                              : "duplicate answered");
  for (std::size_t i = begin; i < end; ++i) line.acknowledged[i] = true;
}

}  // namespace once::simulation
