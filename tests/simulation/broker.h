// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/log.h>
#include <once/sink.h>
#include <once/source.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "log/partition.h"
#include "simulation/context.h"

namespace once::simulation {

inline const std::string log_directory = "data";

// An append on its way.
struct Request {
  PartitionName where;
  Stamp stamp;
  std::vector<Message> messages;
};

// The process that owns the logs: real partitions on a simulated disk. It dies in the middle of
// its work, by itself or with the whole machine, and is started again by the world.
class Broker {
 public:
  Broker(Context& context, std::map<std::string, TopicOptions> topics);
  ~Broker();

  // Opens all partitions, which recovers them, and checks everything that is in them.
  void start();
  void stop(bool power_cut);
  bool up() const { return up_; }
  // The machine went down: all other processes on it are dead too. Told once.
  bool take_power_cut() { return std::exchange(power_was_cut_, false); }

  [[nodiscard]] Result<std::uint32_t> partitions(const std::string& topic) const;
  [[nodiscard]] Result<Stamp> enter(const PartitionName& where, std::string_view name);
  // All are staged before the first is synced, as when they come on several connections at once.
  // The answer is that of the first.
  [[nodiscard]] Result<Receipt> append(const std::vector<Request>& requests);

  // Durable messages from `offset` on, for a consumer elsewhere.
  [[nodiscard]] Result<log::ReadResult> fetch(const PartitionName& where, std::int64_t offset);

  // Everything in the partitions of a topic.
  [[nodiscard]] Result<std::vector<Record>> read(const std::string& topic);
  void check_logs();

 private:
  using Partitions = std::map<PartitionName, std::unique_ptr<log::Partition>>;
  struct Staged {
    const Request* request = nullptr;
    Result<log::Ticket> ticket;
  };

  void arm();
  void died(const char* where);
  Status open_partitions();
  [[nodiscard]] Result<Receipt> answer(const Staged& staged);
  [[nodiscard]] Result<std::vector<Record>> read(log::Partition& partition);

  Context& context_;
  const std::map<std::string, TopicOptions> topics_;
  std::unique_ptr<testing::SimFiles> files_;
  std::vector<std::unique_ptr<File>> locks_;  // of the topics: readers ask for them
  Partitions partitions_;
  bool up_ = false;
  bool power_was_cut_ = false;
};

// The way to the broker: requests and answers are lost, doubled and overtaken.
class Network {
 public:
  Network(Context& context, Broker& broker) : context_(context), broker_(broker) {}

  [[nodiscard]] Result<Receipt> append(const PartitionName& where, const Stamp& stamp,
                                       std::span<const Message> messages);
  [[nodiscard]] Result<Stamp> enter(const PartitionName& where, std::string_view name);
  Broker& broker() { return broker_; }

  // One of the requests that were held up arrives.
  void deliver_late();
  void set_canary() { canary_ = true; }  // once, an answer is made up

 private:
  Context& context_;
  Broker& broker_;
  std::vector<Request> late_;
  [[nodiscard]] Request take_late();

  bool canary_ = false;
};

// A topic at the other end of the network.
class RemoteSink final : public Sink, public SinkProducers {
 public:
  RemoteSink(Network& network, std::string topic) : network_(network), topic_(std::move(topic)) {}

  SinkTraits traits() const override {
    return {.name = "remote:" + topic_, .recognises = Recognises::by_stamp};
  }
  SinkProducers* producers() override { return this; }
  Result<std::uint32_t> partitions() override { return network_.broker().partitions(topic_); }
  Result<Stamp> enter(std::uint32_t partition, std::string_view name) override {
    return network_.enter({topic_, partition}, name);
  }
  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         std::span<const Message> messages) override {
    return network_.append({topic_, partition}, stamp, messages);
  }

 private:
  Network& network_;
  const std::string topic_;
};

// A consumer's view of a topic at the other end of the network.
class RemoteSource final : public Source, public SourceReplay {
 public:
  RemoteSource(Broker& broker, std::string topic);

  SourceReplay* replay() override { return this; }
  SourceTraits traits() const override;
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override;
  Status ack(std::span<const Delivery>) override { return {}; }
  Status release(std::span<const Delivery>, std::int64_t) override { return {}; }
  Status seek(std::string_view partition, std::int64_t offset) override;

 private:
  struct Partition {
    std::string name;
    bool announced = false;
    std::int64_t offset = 0;
  };

  Broker& broker_;
  const std::string topic_;
  std::vector<Partition> partitions_;
  std::size_t turn_ = 0;
};

}  // namespace once::simulation
