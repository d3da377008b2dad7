// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "simulation/broker.h"

namespace once::simulation {
namespace {

constexpr std::size_t late_requests_max = 20;

tl::unexpected<Error> no_answer() {
  return fail(Remedy::recheck, "lost", "no answer from the broker");
}

}  // namespace

Result<Receipt> Network::append(const PartitionName& where, const Stamp& stamp,
                                std::span<const Message> messages) {
  if (canary_ && stamp.sequence > 0) {
    canary_ = false;
    context_.history.asked(where, stamp, messages);
    const Receipt made_up{.offset = -1, .duplicates = 0};
    context_.history.finished(where, stamp, messages.size(), made_up);
    return made_up;
  }
  const auto keep = [&] {
    if (late_.size() < late_requests_max)
      late_.push_back({where, stamp, {messages.begin(), messages.end()}});
  };
  if (context_.fault(60)) {
    context_.trace.note("request lost");
    return no_answer();
  }
  if (context_.fault(60)) {
    context_.trace.note("request held up");
    keep();
    return no_answer();
  }
  if (context_.fault(60)) {
    context_.trace.note("request doubled");
    keep();
  }
  std::vector<Request> together{{where, stamp, {messages.begin(), messages.end()}}};
  while (!late_.empty() && context_.fault(100)) together.push_back(take_late());
  if (context_.fault(40)) together.push_back(together.front());
  auto answer = broker_.append(together);
  if (answer && context_.fault(80)) {
    context_.trace.note("answer lost");
    return no_answer();
  }
  return answer;
}

Result<Stamp> Network::enter(const PartitionName& where, std::string_view name) {
  if (context_.fault(50)) return no_answer();
  auto answer = broker_.enter(where, name);
  if (answer && context_.fault(20)) answer = broker_.enter(where, name);  // doubled
  if (answer && context_.fault(50)) return no_answer();
  return answer;
}

Request Network::take_late() {
  const std::size_t index = context_.random.below(late_.size());
  Request request = std::move(late_[index]);
  late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(index));
  context_.trace.reached("late request arrives");
  return request;
}

void Network::deliver_late() {
  if (late_.empty()) return;
  const auto answer = broker_.append({take_late()});
  if (!answer && answer.error().tag == "fenced") context_.trace.reached("late request fenced");
}

RemoteSource::RemoteSource(Broker& broker, std::string topic)
    : broker_(broker), topic_(std::move(topic)) {
  const std::uint32_t count = broker_.partitions(topic_).value();
  for (std::uint32_t i = 0; i < count; ++i)
    partitions_.push_back({fmt::format("{}/{}", topic_, i)});
}

SourceTraits RemoteSource::traits() const {
  return {.name = topic_, .ordered = true, .replayable = true, .redelivery_ms_max = -1};
}

Result<Batch> RemoteSource::poll(std::size_t count_max, std::int64_t) {
  Batch batch;
  for (Partition& partition : partitions_) {
    if (std::exchange(partition.announced, true)) continue;
    batch.event = Batch::Event::assigned;
    batch.partition = partition.name;
    return batch;
  }
  for (std::size_t i = 0; i < partitions_.size(); ++i) {
    const std::size_t index = turn_++ % partitions_.size();
    Partition& partition = partitions_[index];
    auto read =
        ONCE_TRY(broker_.fetch({topic_, static_cast<std::uint32_t>(index)}, partition.offset));
    if (read.deliveries.empty()) continue;
    if (read.deliveries.size() > count_max) read.deliveries.resize(count_max);
    for (Delivery& delivery : read.deliveries) delivery.partition = partition.name;
    batch.partition = partition.name;
    batch.deliveries = std::move(read.deliveries);
    batch.memory = std::move(read.memory);
    batch.end_offset = partition.offset = batch.deliveries.back().offset + 1;
    return batch;
  }
  batch.drained = true;
  return batch;
}

Status RemoteSource::seek(std::string_view name, std::int64_t offset) {
  for (Partition& partition : partitions_)
    if (partition.name == name) partition.offset = std::max<std::int64_t>(offset, 0);
  return {};
}

}  // namespace once::simulation
