// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>
#include <once/transaction.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "wire/kafka/client.h"
#include "wire/kafka/fetch_waker.h"

namespace once::kafka {

// A consumer of one or more topics. Where it goes on is the pipeline's to say, by `seek`: a
// partition is announced, and only fetched when its position is known. Taking it away works the
// same way: it is announced, and given up with the next poll. It joins its group with the first
// poll: whoever only opens it, to check something or while other parts are away, holds no
// partitions.
//
// Each partition has a queue of its own in librdkafka, which stops fetching when the queue is full;
// so a pipeline that does not ask for messages pauses the partition, while news still gets through.
class KafkaSource final : public Source, public SourceReplay {
 public:
  static Result<std::unique_ptr<KafkaSource>> open(const Address& address);
  ~KafkaSource() override;

  SourceTraits traits() const override;
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override;
  Status ack(std::span<const Delivery> done) override;
  Status release(std::span<const Delivery> undone, std::int64_t delay_ms) override;
  SourceReplay* replay() override { return this; }
  Status seek(std::string_view partition, std::int64_t offset) override;
  Result<std::vector<PartitionEnd>> ends() override;
  void leave() override;

 private:
  struct Topic {
    std::uint32_t partition_count = 0;  // may grow
    bool compacted = false;
    bool settings_known = true;  // the cluster has told them
  };
  using Topics = std::map<std::string, Topic, std::less<>>;
  // What is to know before the consumer is made: its settings depend on it.
  struct Facts;
  struct Partition {
    const Topics::value_type* topic = nullptr;
    std::int32_t number = 0;
    Queue queue;                    // empty until it is fetched
    std::int64_t from = -1;         // where to begin, when it is not fetched yet
    bool rewind = false;            // to `from`, before the next fetch
    std::int64_t next = -1;         // nothing below this is delivered any more; -1: not known
    std::int64_t again_until = -1;  // below this, deliveries are repetitions
    std::uint32_t attempt = 1;
    bool at_end = false;
    Witness last = {};           // of what was delivered since the seek; none: nothing was
    bool recognising = false;    // `last` is read again, to see that it is still the same topic ...
    bool missed_last = false;    // the end came first; it is read to its end once more
    std::int64_t resume = -1;    // ... and reading goes on from here; -1: the oldest message
    std::size_t queued_max = 0;  // the most messages in the queue since librdkafka was woken
  };
  // A change of what is ours that librdkafka waits for us to carry out.
  struct Change {
    bool assign = false;
    bool cooperative = false;
    PartitionList partitions;
  };
  struct Event {
    Batch::Event kind;
    std::string_view partition;
  };
  struct Fetched;

  KafkaSource(Address address, Facts facts);
  Status start();
  Status join();
  void own_everything();

  // Callbacks of librdkafka.
  static void rebalanced(rd_kafka_t*, rd_kafka_resp_err_t code,
                         rd_kafka_topic_partition_list_t* partitions, void* opaque);
  static void woken(rd_kafka_t*, void* opaque);

  Status look_for_more_partitions();
  PartitionList all_partitions() const;
  std::string_view name_of(const rd_kafka_topic_partition_t& place);
  void announce(bool assign, const rd_kafka_topic_partition_list_t& partitions);
  Status carry_out();
  Status find_starts(rd_kafka_topic_partition_list_t& places);
  Status assign(const Change& change);
  Status unassign(const Change& change);
  Result<std::int64_t> committed_offset(const Partition& partition);
  struct Extent {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  std::optional<Extent> extent(const Partition& partition, int wait_ms) const;
  static PartitionList place_of(const Partition& partition, std::int64_t offset);
  Result<std::optional<Batch>> next_event();
  Status serve_news();
  Result<Batch> fetch(std::size_t count_max);
  Result<Batch> fetch(std::string_view name, Partition& partition, std::size_t count_max);
  void complete(Batch& batch, std::string_view name, const Partition& partition,
                std::shared_ptr<Fetched> fetched) const;
  Status take(const rd_kafka_message_t& message, std::string_view name, Partition& partition,
              Batch& batch, Fetched& fetched);
  static Delivery delivery_of(const rd_kafka_message_t& message, std::string_view name);
  Status judge_error(const rd_kafka_message_t& message, std::string_view name) const;
  Status rewind(std::string_view name, Partition& partition);

  // Whether it is still the topic that was read before (source_recognise.cc).
  bool interrupted();
  void recognise_all();
  Status recognise(const rd_kafka_message_t& message, std::string_view name, Partition& partition);
  Status ends_without_last(std::int64_t end, std::string_view name, Partition& partition);
  Result<bool> look_for_last(std::string_view name, Partition& partition);

  static void let_go(Partition& partition);
  bool all_at_end() const;
  void fetch_more(Partition& partition, std::size_t taken);
  void wait(std::int64_t wait_ms);

  const Address address_;
  const std::string identity_;
  Topics topics_;
  std::set<std::string, std::less<>> names_;  // of partitions; they live as long as the source
  std::map<std::string_view, Partition> partitions_;
  std::deque<Event> events_;  // not told yet
  std::optional<Change> change_;
  bool joined_ = false;  // asked for partitions: those of a group, or all
  bool was_assigned_ = false;
  std::atomic<bool> left_{false};
  std::uint64_t losses_ = 0;                         // of connections, when looked at last ...
  std::chrono::steady_clock::time_point looked_at_;  // ... which was then
  std::chrono::steady_clock::time_point ask_after_;  // a broker that did not answer
  std::string_view turn_;                            // the partition that was delivered from last

  std::mutex mutex_;  // taken with no other lock
  std::condition_variable arrival_;
  bool arrived_ = false;  // guarded by mutex_

  std::unique_ptr<FetchWaker> waker_;  // only where librdkafka needs it
  // Last, so that no callback comes when the rest is gone.
  std::shared_ptr<Client> client_;
};

}  // namespace once::kafka
