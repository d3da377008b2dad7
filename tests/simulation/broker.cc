// SPDX-License-Identifier: Apache-2.0
#include "simulation/broker.h"

#include <fmt/format.h>

#include <algorithm>

#include "log/topic.h"

namespace once::simulation {
namespace {

tl::unexpected<Error> down() {
  return fail(Remedy::retry, "down", "the broker does not accept connections");
}
tl::unexpected<Error> died_on_us() {
  return fail(Remedy::recheck, "lost", "the broker died before it answered");
}

}  // namespace

Broker::Broker(Context& context, std::map<std::string, TopicOptions> topics)
    : context_(context), topics_(std::move(topics)) {
  testing::SimFiles files(context_.disk);
  for (const auto& [topic, options] : topics_)
    if (const auto made = log::create_topic(files, log_directory, topic, options,
                                            [this] { return context_.random.next(); });
        !made)
      context_.history.violate("the topics cannot be made: " + made.error().text);
}

Broker::~Broker() {
  partitions_.clear();
  locks_.clear();
}

// Sometimes the process will not survive what it does next: it dies at a failpoint, or in the
// middle of a change to the disk.
void Broker::arm() { files_->die_at(context_.fault(40) ? 1 + context_.random.below(8) : 0); }

void Broker::died(const char* where) {
  context_.trace.reached(fmt::format("broker dies in {}", where));
  stop(context_.random.chance(600));
}

void Broker::stop(bool power_cut) {
  context_.trace.note("broker stops");
  up_ = false;
  if (files_) files_->kill();
  partitions_.clear();
  locks_.clear();
  files_.reset();
  if (!power_cut) return;
  context_.disk.power_cut();
  power_was_cut_ = true;
  context_.trace.reached("power cut");
}

void Broker::start() {
  context_.trace.note("broker starts");
  files_ = std::make_unique<testing::SimFiles>(context_.disk);
  try {
    const DeathAtPoint death(context_.fault(50) ? 1 + context_.random.below(6) : 0);
    arm();
    if (const Status opened = open_partitions(); !opened) {
      context_.trace.note("broker cannot start: {}", opened.error().tag);
      if (opened.error().tag == "corrupt")
        context_.history.violate("I16: nobody damaged the log: " + opened.error().text);
      if (context_.calm)
        context_.history.violate("the broker cannot start: " + opened.error().text);
      return stop(false);
    }
    up_ = true;
    files_->die_at(0);
  } catch (const SimulatedDeath&) {
    return died("its recovery");
  }
  check_logs();
}

Status Broker::open_partitions() {
  for (const auto& [topic, settings] : topics_) {
    locks_.push_back(ONCE_TRY(files_->open(log::lock_path(log_directory, topic), OpenMode::lock)));
    for (std::uint32_t i = 0; i < settings.partitions; ++i) {
      log::PartitionOptions options;
      options.segment_bytes_max = settings.segment_bytes_max;
      options.retention_ms = settings.retention_ms;
      options.gaps = settings.gaps;
      options.hold_count_max = 8;
      options.random = [this] { return context_.random.next(); };
      const PartitionName where{topic, i};
      partitions_[where] = ONCE_TRY(log::Partition::open(
          *files_, context_.clock, log::partition_directory(log_directory, topic, i), options));
    }
  }
  return {};
}

Result<std::uint32_t> Broker::partitions(const std::string& topic) const {
  return topics_.at(topic).partitions;
}

Result<Stamp> Broker::enter(const PartitionName& where, std::string_view name) {
  if (!up_) return down();
  try {
    const DeathAtPoint death(context_.fault(30) ? 1 + context_.random.below(3) : 0);
    arm();
    log::Partition& partition = *partitions_.at(where);
    const bool sync_fails = context_.disk.sync_will_fail();
    const auto stamp = partition.enter(name);
    if (sync_fails && !context_.disk.sync_will_fail()) context_.trace.reached("sync failed");
    files_->die_at(0);
    context_.trace.note("{} enters {}/{}: {}", name, where.first, where.second,
                        stamp ? "ok" : stamp.error().tag.c_str());
    if (stamp) context_.history.entered(where, *stamp, partition.end_offset());
    return stamp;
  } catch (const SimulatedDeath&) {
    died("an entry");
    return died_on_us();
  }
}

Result<Receipt> Broker::append(const std::vector<Request>& requests) {
  if (!up_) return down();
  std::vector<Staged> staged;
  try {
    const DeathAtPoint death(context_.fault(40) ? 1 + context_.random.below(4) : 0);
    arm();
    const bool sync_fails = context_.disk.sync_will_fail();
    for (const Request& request : requests) {
      context_.history.asked(request.where, request.stamp, request.messages);
      staged.push_back(
          {&request, partitions_.at(request.where)->stage(request.stamp, request.messages)});
    }
    std::map<PartitionName, Status> synced;
    for (const Request& request : requests)
      if (!synced.contains(request.where))
        synced[request.where] = partitions_.at(request.where)->sync();
    if (sync_fails && !context_.disk.sync_will_fail()) context_.trace.reached("sync failed");
    files_->die_at(0);
    std::vector<Result<Receipt>> answers;
    for (const Staged& each : staged) {
      answers.push_back(answer(each));
      const Request& request = *each.request;
      context_.history.finished(request.where, request.stamp, request.messages.size(),
                                answers.back());
      context_.trace.note("append of {} to {}/{}: {}", request.messages.size(), request.where.first,
                          request.where.second,
                          answers.back() ? fmt::format("offset {}", answers.back()->offset)
                                         : answers.back().error().tag);
    }
    return answers.front();
  } catch (const SimulatedDeath&) {
    died("an append");
    return died_on_us();
  }
}

Result<log::ReadResult> Broker::fetch(const PartitionName& where, std::int64_t offset) {
  if (!up_) return down();
  log::Partition& partition = *partitions_.at(where);
  return partition.read(std::max(offset, partition.first_offset()),
                        1 + context_.random.below(4000));
}

Result<Receipt> Broker::answer(const Staged& staged) {
  if (!staged.ticket) return fail(staged.ticket.error());
  auto receipt = partitions_.at(staged.request->where)->outcome(*staged.ticket);
  if (receipt) return receipt;
  if (receipt.error().tag == "full") context_.trace.reached("refused: the disk is full");
  if (receipt.error().tag != "pending") return receipt;
  // It waits for its predecessors, and may become true without anybody waiting for it.
  context_.trace.reached("held for its predecessors");
  return fail(Remedy::recheck, "held", "no answer yet");
}

Result<std::vector<Record>> Broker::read(log::Partition& partition) {
  std::vector<Record> records;
  std::int64_t offset = partition.first_offset();
  while (offset < partition.end_offset()) {
    const auto some = ONCE_TRY(partition.read(offset, 1 << 14));
    for (const Delivery& delivery : some.deliveries) {
      Message message{std::string(delivery.id),
                      std::string(delivery.key),
                      std::string(delivery.body),
                      {},
                      delivery.timestamp_ms};
      for (const HeaderView& header : delivery.headers)
        message.headers.push_back({std::string(header.name), std::string(header.value)});
      records.push_back({delivery.offset, delivery.stamp, std::move(message)});
    }
    if (some.end_offset <= offset)
      return fail(Remedy::stop, "stuck", fmt::format("a read at {} gives nothing", offset));
    offset = some.end_offset;
  }
  return records;
}

Result<std::vector<Record>> Broker::read(const std::string& topic) {
  std::vector<Record> all;
  for (auto& [where, partition] : partitions_) {
    if (where.first != topic) continue;
    for (Record& record : ONCE_TRY(read(*partition))) all.push_back(std::move(record));
  }
  return all;
}

void Broker::check_logs() {
  for (auto& [where, partition] : partitions_) {
    const auto records = read(*partition);
    if (!records) {
      context_.history.violate(
          fmt::format("{}/{} cannot be read: {}", where.first, where.second, records.error().text));
      continue;
    }
    context_.history.check(where, *records, topics_.at(where.first).gaps != GapPolicy::accept);
  }
}

}  // namespace once::simulation
