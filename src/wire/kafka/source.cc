// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/source.h"

#include <fmt/format.h>
#include <once/open.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "model/gone.h"
#include "model/witness.h"
#include "wire/kafka/envelope.h"
#include "wire/kafka/leave.h"
#include "wire/kafka/look.h"
#include "wire/kafka/topic_settings.h"

namespace once::kafka {
namespace {

// For how long a source waits for the settings of a topic.
constexpr int settings_ms = 2'000;

Settings consumer_settings(const Address& address) {
  Settings settings{
      {"group.id", address.group.empty() ? "once" : address.group},
      {"enable.auto.commit", address.is_member() ? "true" : "false"},
      {"enable.auto.offset.store", "false"},
      {"isolation.level", "read_committed"},
      {"auto.offset.reset", "error"},
      {"enable.partition.eof", "true"},
  };
  if (address.is_member() && !address.member.empty())
    settings.emplace_back("group.instance.id", address.member);
  return settings;
}

// Whether librdkafka can be told when to look again at queues that were full.
bool knows_queue_backoff() {
  const Conf conf(rd_kafka_conf_new());
  std::size_t size = 0;
  return rd_kafka_conf_get(conf.get(), "fetch.queue.backoff.ms", nullptr, &size) ==
         RD_KAFKA_CONF_OK;
}

// Messages that wait in our memory, of all partitions together: some hundred bytes each, beside
// what they hold. Fewer than some thousand of one partition would not keep its lane busy.
constexpr std::size_t queued_goal = 100'000;
constexpr std::size_t queued_min = 2'000;
constexpr std::size_t queued_max = 20'000;

// Before this version librdkafka aborts the process when the client of a group's member is
// destroyed that never got an assignment.
constexpr int destructible_version = 0x02030000;

// For how long a source that is closed waits for its group, and for how long at most when its
// process has to end.
constexpr int close_ms = 4'000;
constexpr int leave_ms = 2'000;

// For how long a source waits to hear where a partition begins and ends. Where no broker answers,
// the first fetch finds out.
constexpr int extent_ms = 3'000;

// For how long it waits to hear where all of them end: nothing depends on it but what people see.
constexpr int ends_ms = 1'000;

// At least so often a source that waits for messages looks whether it was interrupted.
constexpr std::chrono::milliseconds look_interval(250);

// A member that dies without leaving keeps its partitions for this long. Its heartbeats come from
// a thread of their own, so that only a process that is stopped or a broken network can be taken
// for dead; and then its fence keeps it from doing harm. A static member is expected to come back
// and keeps librdkafka's own, longer time.
constexpr std::string_view session_timeout_ms = "10000";

// Defaults that the address may override.
void add_default_properties(Address& address, std::size_t partition_count) {
  const std::size_t queued =
      std::clamp(queued_goal / std::max<std::size_t>(partition_count, 1), queued_min, queued_max);
  Settings defaults{
      {"partition.assignment.strategy", "cooperative-sticky"},
      {"queued.min.messages", fmt::format("{}", queued)},
      {"queued.max.messages.kbytes", "16384"},
      {"fetch.wait.max.ms", "100"},
      {"fetch.error.backoff.ms", "100"},
  };
  if (address.member.empty()) defaults.emplace_back("session.timeout.ms", session_timeout_ms);
  if (knows_queue_backoff()) defaults.emplace_back("fetch.queue.backoff.ms", "5");
  address.properties.insert(address.properties.begin(), defaults.begin(), defaults.end());
}

}  // namespace

// The memory of a batch. Messages belong to the client, so they keep it.
struct KafkaSource::Fetched {
  explicit Fetched(std::shared_ptr<Client> owner) : client(std::move(owner)) {}
  Fetched(const Fetched&) = delete;
  Fetched& operator=(const Fetched&) = delete;
  ~Fetched() {
    for (rd_kafka_message_t* message : messages) rd_kafka_message_destroy(message);
  }

  std::shared_ptr<Client> client;
  std::vector<rd_kafka_message_t*> messages;
  std::vector<HeaderView> headers;
  std::vector<std::size_t> headers_end;  // of each delivery
};

struct KafkaSource::Facts {
  Topics topics;
  std::string identity;

  static Result<Facts> ask(const Address& address) {
    const auto client = ONCE_TRY(Client::make(RD_KAFKA_CONSUMER, address, {}));
    Facts facts;
    for (const std::string& name : address.topics) {
      Topic& topic = facts.topics[name];
      topic.partition_count = ONCE_TRY(client->partition_count(name));
      // Whether messages can be removed from its middle is not needed to read it: a broker that
      // does not tell is not waited for.
      const auto settings = topic_settings(*client, name, settings_ms);
      topic.compacted = settings && is_compacted(*settings);
      topic.settings_known = settings && settings->contains("cleanup.policy");
    }
    if (const std::string cluster = client->cluster_id(); !cluster.empty())
      facts.identity = "kafka:" + cluster;
    return facts;
  }

  std::size_t partition_count() const {
    std::size_t count = 0;
    for (const auto& [name, topic] : topics) count += topic.partition_count;
    return count;
  }
};

KafkaSource::KafkaSource(Address address, Facts facts)
    : address_(std::move(address)),
      identity_(std::move(facts.identity)),
      topics_(std::move(facts.topics)) {}

Result<std::unique_ptr<KafkaSource>> KafkaSource::open(const Address& address) {
  Facts facts = ONCE_TRY(Facts::ask(address));
  Address chosen = address;
  add_default_properties(chosen, facts.partition_count());
  std::unique_ptr<KafkaSource> source(new KafkaSource(std::move(chosen), std::move(facts)));
  ONCE_TRY(source->start());
  return source;
}

Status KafkaSource::start() {
  client_ = ONCE_TRY(Client::make(
      RD_KAFKA_CONSUMER, address_, consumer_settings(address_),
      [](rd_kafka_conf_t& conf) { rd_kafka_conf_set_rebalance_cb(&conf, rebalanced); }, this));
  if (!knows_queue_backoff()) waker_ = std::make_unique<FetchWaker>(client_);
  looked_at_ = std::chrono::steady_clock::now();
  rd_kafka_poll_set_consumer(client_->get());
  const Queue news(rd_kafka_queue_get_consumer(client_->get()));
  rd_kafka_queue_cb_event_enable(news.get(), woken, this);
  return {};
}

Status KafkaSource::join() {
  if (!address_.is_member()) {
    own_everything();
    joined_ = true;
    return {};
  }
  const PartitionList topics(rd_kafka_topic_partition_list_new(static_cast<int>(topics_.size())));
  for (const auto& [name, topic] : topics_)
    rd_kafka_topic_partition_list_add(topics.get(), name.c_str(), RD_KAFKA_PARTITION_UA);
  const rd_kafka_resp_err_t code = rd_kafka_subscribe(client_->get(), topics.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(client_->error(code, "subscribe"));
  joined_ = true;
  return {};
}

void KafkaSource::own_everything() {
  announce(true, *all_partitions());
  change_->cooperative = false;
}

PartitionList KafkaSource::all_partitions() const {
  PartitionList all(rd_kafka_topic_partition_list_new(1));
  for (const auto& [name, topic] : topics_)
    rd_kafka_topic_partition_list_add_range(all.get(), name.c_str(), 0,
                                            static_cast<int>(topic.partition_count) - 1);
  return all;
}

// Partitions may be added, and other members of the group may have them.
Status KafkaSource::look_for_more_partitions() {
  for (auto& [name, topic] : topics_) {
    const std::uint32_t count = ONCE_TRY(client_->partition_count(name, ends_ms));
    topic.partition_count = std::max(topic.partition_count, count);
  }
  return {};
}

// One request to each leader: a time that is the mark of the end is answered with the end.
Result<std::vector<PartitionEnd>> KafkaSource::ends() {
  ONCE_TRY(look_for_more_partitions());
  const PartitionList all = all_partitions();
  for (int i = 0; i < all->cnt; ++i) all->elems[i].offset = RD_KAFKA_OFFSET_END;
  const rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(client_->get(), all.get(), ends_ms);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return fail(client_->error(code, "ask where the topic ends"));
  std::vector<PartitionEnd> ends;
  for (int i = 0; i < all->cnt; ++i) {
    const rd_kafka_topic_partition_t& place = all->elems[i];
    if (place.err == RD_KAFKA_RESP_ERR_NO_ERROR && place.offset >= 0)
      ends.push_back({std::string(name_of(place)), place.offset});
  }
  return ends;
}

KafkaSource::~KafkaSource() {
  if (!client_) return;
  waker_.reset();
  const Queue news(rd_kafka_queue_get_consumer(client_->get()));
  rd_kafka_queue_cb_event_enable(news.get(), nullptr, nullptr);
  for (auto& [name, partition] : partitions_) let_go(partition);
  partitions_.clear();
  const bool is_destructible = rd_kafka_version() >= destructible_version ||
                               !address_.is_member() || !joined_ || was_assigned_;
  const bool is_closed = !left_.exchange(true) && close_consumer(*client_, close_ms);
  if (!is_closed || !is_destructible) keep_until_exit(client_);
}

// The client is not destroyed afterwards: the poller may still hold batches of it.
void KafkaSource::leave() {
  if (left_.exchange(true)) return;
  keep_until_exit(client_);
  (void)close_consumer(*client_, leave_ms);
}

SourceTraits KafkaSource::traits() const {
  SourceTraits traits{.name = address_.where(),
                      .ordered = true,
                      .replayable = true,
                      .identity = identity_,
                      .partitions = {}};
  for (const auto& [name, topic] : topics_) {
    for (std::uint32_t i = 0; i < topic.partition_count; ++i) {
      traits.partitions.push_back(fmt::format("{}/{}", name, i));
      if (topic.compacted) traits.compacted.push_back(traits.partitions.back());
    }
    if (!topic.settings_known)
      traits.warnings.push_back(fmt::format(
          "the cleanup.policy of {0} cannot be read: it is taken for delete. If {0} is compacted, "
          "a start ends with the error \"gone\" when the last message that was handled has been "
          "removed. Give this user the right DescribeConfigs on the topic",
          name));
    if (topic.compacted)
      traits.warnings.push_back(fmt::format(
          "{} is compacted (cleanup.policy): Kafka removes messages when a newer one has the same "
          "key, read or not, and those never take effect. Only the last word about a key is sure "
          "to; for all of them set cleanup.policy=delete",
          name));
  }
  return traits;
}

// Called inside a poll of ours.
void KafkaSource::rebalanced(rd_kafka_t*, rd_kafka_resp_err_t code,
                             rd_kafka_topic_partition_list_t* partitions, void* opaque) {
  KafkaSource& source = *static_cast<KafkaSource*>(Client::of(opaque).opaque());
  source.announce(code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS, *partitions);
}

void KafkaSource::woken(rd_kafka_t*, void* opaque) {
  KafkaSource& source = *static_cast<KafkaSource*>(opaque);
  {
    const std::lock_guard lock(source.mutex_);
    source.arrived_ = true;
  }
  source.arrival_.notify_all();
}

std::string_view KafkaSource::name_of(const rd_kafka_topic_partition_t& place) {
  return *names_.insert(fmt::format("{}/{}", place.topic, place.partition)).first;
}

void KafkaSource::announce(bool assign, const rd_kafka_topic_partition_list_t& partitions) {
  Change change;
  change.assign = assign;
  change.cooperative =
      std::string_view(rd_kafka_rebalance_protocol(client_->get())) == "COOPERATIVE";
  change.partitions.reset(rd_kafka_topic_partition_list_copy(&partitions));
  for (int i = 0; i < partitions.cnt; ++i) {
    const std::string_view name = name_of(partitions.elems[i]);
    const std::int32_t number = partitions.elems[i].partition;
    auto& topic = *topics_.try_emplace(partitions.elems[i].topic).first;
    topic.second.partition_count =
        std::max(topic.second.partition_count, static_cast<std::uint32_t>(number) + 1);
    if (assign) {
      partitions_[name].topic = &topic;
      partitions_[name].number = number;
    }
    events_.push_back({assign ? Batch::Event::assigned : Batch::Event::revoked, name});
  }
  change_ = std::move(change);
}

// The pipeline has been told of every partition and has answered: now it can be so.
Status KafkaSource::carry_out() {
  if (change_->assign) ONCE_TRY(find_starts(*change_->partitions));
  const Change change = std::move(*change_);
  change_.reset();
  return change.assign ? assign(change) : unassign(change);
}

Status KafkaSource::find_starts(rd_kafka_topic_partition_list_t& places) {
  for (int i = 0; i < places.cnt; ++i) {
    rd_kafka_topic_partition_t& place = places.elems[i];
    Partition& partition = partitions_[name_of(place)];
    if (partition.from < 0 && address_.start_committed)
      partition.from = ONCE_TRY(committed_offset(partition));
    place.offset = partition.from < 0 ? RD_KAFKA_OFFSET_BEGINNING : partition.from;
    partition.next = partition.from;
    partition.rewind = false;
    partition.last = {};
    partition.recognising = false;
  }
  return {};
}

Status KafkaSource::assign(const Change& change) {
  for (int i = 0; i < change.partitions->cnt; ++i) {
    const rd_kafka_topic_partition_t& place = change.partitions->elems[i];
    Partition& partition = partitions_[name_of(place)];
    // Before it is assigned: then none of its messages goes to the common queue.
    partition.queue.reset(
        rd_kafka_queue_get_partition(client_->get(), place.topic, place.partition));
    rd_kafka_queue_forward(partition.queue.get(), nullptr);
    rd_kafka_queue_cb_event_enable(partition.queue.get(), woken, this);
  }
  was_assigned_ = true;
  if (change.cooperative) {
    const Failure failure(rd_kafka_incremental_assign(client_->get(), change.partitions.get()));
    if (failure) return fail(client_->error(failure, "take the partitions"));
    return {};
  }
  const rd_kafka_resp_err_t code = rd_kafka_assign(client_->get(), change.partitions.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(client_->error(code, "take the partitions"));
  return {};
}

Status KafkaSource::unassign(const Change& change) {
  for (int i = 0; i < change.partitions->cnt; ++i) {
    const auto found = partitions_.find(name_of(change.partitions->elems[i]));
    if (found == partitions_.end()) continue;
    let_go(found->second);
    partitions_.erase(found);
  }
  if (change.cooperative) {
    const Failure failure(rd_kafka_incremental_unassign(client_->get(), change.partitions.get()));
    if (failure) return fail(client_->error(failure, "give the partitions back"));
    return {};
  }
  const rd_kafka_resp_err_t code = rd_kafka_assign(client_->get(), nullptr);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return fail(client_->error(code, "give the partitions back"));
  return {};
}

PartitionList KafkaSource::place_of(const Partition& partition, std::int64_t offset) {
  PartitionList place(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(place.get(), partition.topic->first.c_str(), partition.number)
      ->offset = offset;
  return place;
}

// Where the group was before it had a store; -1: it never committed.
Result<std::int64_t> KafkaSource::committed_offset(const Partition& partition) {
  const PartitionList places = place_of(partition, RD_KAFKA_OFFSET_INVALID);
  const rd_kafka_resp_err_t code = rd_kafka_committed(client_->get(), places.get(), answer_ms);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return fail(client_->error(code, "read the group's offsets"));
  return std::max<std::int64_t>(places->elems[0].offset, -1);
}

Result<Batch> KafkaSource::poll(std::size_t count_max, std::int64_t wait_ms) {
  if (!joined_) ONCE_TRY(join());
  if (interrupted()) recognise_all();
  for (bool waited = false;; waited = true) {
    if (auto event = ONCE_TRY(next_event())) return std::move(*event);
    ONCE_TRY(serve_news());
    if (!events_.empty() || change_) continue;
    if (count_max == 0) return Batch{};
    Batch batch = ONCE_TRY(fetch(count_max));
    if (!batch.deliveries.empty() || batch.event != Batch::Event::messages || waited) return batch;
    wait(wait_ms);
  }
}

// The next piece of news, or, when all was told, the change itself.
Result<std::optional<Batch>> KafkaSource::next_event() {
  if (!events_.empty()) {
    Batch batch;
    batch.event = events_.front().kind;
    batch.partition = events_.front().partition;
    events_.pop_front();
    return batch;
  }
  if (change_) ONCE_TRY(carry_out());
  return std::optional<Batch>();
}

// Heartbeats, rebalances, complaints; messages have queues of their own.
Status KafkaSource::serve_news() {
  {
    const std::lock_guard lock(mutex_);
    arrived_ = false;
  }
  const std::unique_ptr<rd_kafka_message_t, Free<rd_kafka_message_destroy>> news(
      rd_kafka_consumer_poll(client_->get(), 0));
  if (!news || news->err == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  if (news->err == RD_KAFKA_RESP_ERR__FATAL) {
    std::array<char, 512> text{};
    const rd_kafka_resp_err_t code = rd_kafka_fatal_error(client_->get(), text.data(), text.size());
    Error error = client_->error(code, "consume", text.data());
    error.remedy = Remedy::stop;
    return fail(std::move(error));
  }
  // A group that exceeded its time, a broker that went: librdkafka goes on by itself.
  Error error = client_->error(news->err, "consume", rd_kafka_message_errstr(news.get()));
  if (error.remedy == Remedy::stop) return fail(std::move(error));
  return {};
}

// Each partition gets its turn.
Result<Batch> KafkaSource::fetch(std::size_t count_max) {
  auto next = partitions_.upper_bound(turn_);
  for (std::size_t i = 0; i < partitions_.size(); ++i, ++next) {
    if (next == partitions_.end()) next = partitions_.begin();
    Batch batch = ONCE_TRY(fetch(next->first, next->second, count_max));
    if (batch.deliveries.empty()) continue;
    turn_ = next->first;
    return batch;
  }
  Batch batch;
  batch.drained = all_at_end();
  if (address_.stop_at_end && batch.drained) batch.event = Batch::Event::end;
  return batch;
}

bool KafkaSource::all_at_end() const {
  return was_assigned_ && std::all_of(partitions_.begin(), partitions_.end(),
                                      [](const auto& known) { return known.second.at_end; });
}

Result<Batch> KafkaSource::fetch(std::string_view name, Partition& partition,
                                 std::size_t count_max) {
  Batch batch;
  if (!partition.queue) return batch;
  if (partition.rewind) ONCE_TRY(rewind(name, partition));
  if (partition.rewind) return batch;  // no broker answers yet
  auto fetched = std::make_shared<Fetched>(client_);
  fetched->messages.resize(count_max);
  const ssize_t count =
      rd_kafka_consume_batch_queue(partition.queue.get(), 0, fetched->messages.data(), count_max);
  fetched->messages.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  if (interrupted()) recognise_all();
  if (fetched->messages.empty() || partition.rewind) return batch;
  if (waker_) fetch_more(partition, fetched->messages.size());
  batch.deliveries.reserve(fetched->messages.size());
  for (const rd_kafka_message_t* message : fetched->messages)
    ONCE_TRY(take(*message, name, partition, batch, *fetched));
  if (batch.deliveries.empty()) return batch;
  partition.last = witness_of(batch.deliveries.back());
  complete(batch, name, partition, std::move(fetched));
  return batch;
}

// When half of what was queued is gone: then there is room again, and still something to do.
void KafkaSource::fetch_more(Partition& partition, std::size_t taken) {
  constexpr std::size_t worth_it = 2000;  // who reads so little at a time is fast enough
  const std::size_t left = rd_kafka_queue_length(partition.queue.get());
  partition.queued_max = std::max(partition.queued_max, left + taken);
  if (partition.queued_max < worth_it || left > partition.queued_max / 2) return;
  partition.queued_max = left;
  waker_->wake(partition.topic->first, partition.number);
}

// Headers are all there now, and stay where they are.
void KafkaSource::complete(Batch& batch, std::string_view name, const Partition& partition,
                           std::shared_ptr<Fetched> fetched) const {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < batch.deliveries.size(); ++i) {
    const std::size_t end = fetched->headers_end[i];
    batch.deliveries[i].headers = std::span(fetched->headers).subspan(begin, end - begin);
    begin = end;
  }
  batch.partition = name;
  batch.end_offset = partition.next;
  std::int64_t low = -1;
  std::int64_t high = -1;
  if (rd_kafka_get_watermark_offsets(client_->get(), partition.topic->first.c_str(),
                                     partition.number, &low, &high) == RD_KAFKA_RESP_ERR_NO_ERROR &&
      high >= 0)
    batch.available_offset = std::max(high, partition.next);
  batch.memory = std::move(fetched);
}

Status KafkaSource::take(const rd_kafka_message_t& message, std::string_view name,
                         Partition& partition, Batch& batch, Fetched& fetched) {
  if (partition.rewind) return {};  // to be read again
  if (partition.recognising) return recognise(message, name, partition);
  if (message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    partition.at_end = true;
    return {};
  }
  if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR) return judge_error(message, name);
  // Some versions deliver once more what was fetched before a seek or a rebalance.
  if (message.offset < partition.next) return {};
  Delivery delivery = delivery_of(message, name);
  delivery.attempt = message.offset < partition.again_until ? partition.attempt : 1;
  take_headers(message, delivery, fetched.headers);
  fetched.headers_end.push_back(fetched.headers.size());
  batch.deliveries.push_back(delivery);
  partition.next = message.offset + 1;
  if (partition.next >= partition.again_until) partition.attempt = 1;
  partition.at_end = false;
  return {};
}

// Without its headers.
Delivery KafkaSource::delivery_of(const rd_kafka_message_t& message, std::string_view name) {
  Delivery delivery;
  delivery.partition = name;
  delivery.offset = message.offset;
  delivery.key = {static_cast<const char*>(message.key), message.key_len};
  delivery.body = {static_cast<const char*>(message.payload), message.len};
  rd_kafka_timestamp_type_t kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  delivery.timestamp_ms = std::max<std::int64_t>(rd_kafka_message_timestamp(&message, &kind), 0);
  return delivery;
}

// What librdkafka does not try again by itself is final.
Status KafkaSource::judge_error(const rd_kafka_message_t& message, std::string_view name) const {
  Error error =
      client_->error(message.err, fmt::format("read {}", name), rd_kafka_message_errstr(&message));
  if (error.remedy == Remedy::stop) return fail(std::move(error));
  return {};
}

void KafkaSource::wait(std::int64_t wait_ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
  std::unique_lock lock(mutex_);
  while (!arrived_ && std::chrono::steady_clock::now() < until) {
    arrival_.wait_until(lock, std::min(until, std::chrono::steady_clock::now() + look_interval));
    if (interrupted()) recognise_all();
  }
}

// Only a hint, for people who watch the group's lag with Kafka's tools.
Status KafkaSource::ack(std::span<const Delivery> done) {
  if (!address_.is_member() || done.empty()) return {};
  const auto found = partitions_.find(done.back().partition);
  if (found == partitions_.end() || !found->second.queue) return {};
  const PartitionList places = place_of(found->second, done.back().offset + 1);
  (void)rd_kafka_offsets_store(client_->get(), places.get());
  return {};
}

// Kafka has no delay: the next fetch begins there.
Status KafkaSource::release(std::span<const Delivery> undone, std::int64_t) {
  std::map<std::string_view, std::int64_t> smallest;
  for (const Delivery& delivery : undone) {
    const auto known = smallest.emplace(delivery.partition, delivery.offset).first;
    known->second = std::min(known->second, delivery.offset);
  }
  for (const auto& [name, offset] : smallest) {
    const auto found = partitions_.find(name);
    if (found == partitions_.end()) continue;
    Partition& partition = found->second;
    if (partition.recognising) {
      partition.resume = std::min(partition.resume, offset);
      continue;
    }
    if (offset >= partition.next) continue;
    partition.again_until = std::max(partition.again_until, partition.next);
    ++partition.attempt;
    partition.from = offset;
    partition.rewind = true;
  }
  return {};
}

Status KafkaSource::seek(std::string_view name, std::int64_t offset) {
  if (offset < -1) return fail(Remedy::stop, "config", fmt::format("offset {}", offset));
  const auto found = partitions_.find(name);
  if (found == partitions_.end())
    return fail(Remedy::stop, "partition", fmt::format("{} has no {}", address_.where(), name));
  Partition& partition = found->second;
  const auto found_there = offset < 0 ? std::nullopt : extent(partition, extent_ms);
  if (found_there && offset < found_there->begin)
    return fail(forgotten_error(name, offset, found_there->begin));
  if (found_there && offset > found_there->end)
    return fail(ends_before_error(name, found_there->end, offset));
  partition.again_until = -1;
  partition.attempt = 1;
  partition.last = {};
  partition.recognising = false;
  partition.from = offset;
  partition.rewind = partition.queue != nullptr;  // else it is used when it is assigned
  return {};
}

// Where a partition begins and ends; nothing when no broker answers in time. The function that
// librdkafka has for it (rd_kafka_query_watermark_offsets) waits longer than it is told.
std::optional<KafkaSource::Extent> KafkaSource::extent(const Partition& partition,
                                                       int wait_ms) const {
  std::array<std::int64_t, 2> found{RD_KAFKA_OFFSET_BEGINNING, RD_KAFKA_OFFSET_END};
  for (std::int64_t& offset : found) {
    const PartitionList places = place_of(partition, offset);
    if (rd_kafka_offsets_for_times(client_->get(), places.get(), wait_ms) !=
            RD_KAFKA_RESP_ERR_NO_ERROR ||
        places->elems[0].err != RD_KAFKA_RESP_ERR_NO_ERROR || places->elems[0].offset < 0)
      return std::nullopt;
    offset = places->elems[0].offset;
  }
  return Extent{found[0], found[1]};
}

Status KafkaSource::rewind(std::string_view name, Partition& partition) {
  if (partition.recognising && !ONCE_TRY(look_for_last(name, partition))) return {};
  const PartitionList places =
      place_of(partition, partition.from < 0 ? RD_KAFKA_OFFSET_BEGINNING : partition.from);
  const Failure failure(rd_kafka_seek_partitions(client_->get(), places.get(), answer_ms));
  if (failure) return fail(client_->error(failure, fmt::format("go back in {}", name)));
  const rd_kafka_resp_err_t code = places->elems[0].err;
  // librdkafka has given the partition up, because there was no such offset in between.
  if (code == RD_KAFKA_RESP_ERR__STATE && partition.recognising)
    return fail(replaced_error(name, partition.last.offset));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return fail(client_->error(code, fmt::format("go back in {}", name)));
  partition.next = partition.from;
  partition.at_end = false;
  partition.rewind = false;
  return {};
}

// Nobody is to be woken for it any more, also while a batch keeps the client alive.
void KafkaSource::let_go(Partition& partition) {
  if (partition.queue) rd_kafka_queue_cb_event_enable(partition.queue.get(), nullptr, nullptr);
}

}  // namespace once::kafka

namespace once {

Result<std::unique_ptr<Source>> open_kafka_source(std::string_view url) {
  return kafka::KafkaSource::open(ONCE_TRY(kafka::Address::parse(url, kafka::Role::source)));
}

Result<std::unique_ptr<Source>> kafka::open_source_to_look(std::string_view url) {
  Address address = ONCE_TRY(Address::parse(url, Role::source));
  address.only_looks = true;
  return KafkaSource::open(address);
}

}  // namespace once
