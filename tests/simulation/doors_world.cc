// SPDX-License-Identifier: Apache-2.0
#include "simulation/doors_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/crc32c.h"
#include "log/group_commit.h"
#include "log/topic.h"
#include "simulation/context.h"

namespace once::simulation {
namespace {

constexpr int calm_rounds_max = 2000;
constexpr std::int64_t hold_ms = 50;

// Some consecutive messages of a client that are always sent together.
struct Parcel {
  std::uint64_t begin = 0;  // number of its first message
  std::uint32_t count = 0;
  bool is_compressed = false;
  bool is_done = false;  // acknowledged, or found in the log
  std::optional<std::int64_t> offset = std::nullopt;
};

// A program that sends messages "NAME-0", "NAME-1" and so on, as record batches or as messages.
struct Client {
  std::string name;
  bool sends_batches = false;
  std::vector<Parcel> parcels = {};
  std::optional<Stamp> stamp = std::nullopt;  // its sequence: where its epoch begins

  std::string id(std::uint64_t number) const { return fmt::format("{}-{}", name, number); }
  std::size_t next() const {
    return static_cast<std::size_t>(
        std::find_if(parcels.begin(), parcels.end(),
                     [](const Parcel& parcel) { return !parcel.is_done; }) -
        parcels.begin());
  }
};

// On its way; a copy of it may come again much later.
struct Request {
  std::size_t client = 0;
  std::size_t parcel = 0;
  Stamp stamp;
  std::vector<Message> messages;
  std::string batch;
};

struct Stored {
  std::int64_t offset = 0;
  std::string id;
};

// What a client sends of a compressed batch: nobody but its consumers looks into the records.
std::string compressed(std::string batch, const std::string& records) {
  batch.resize(log::batch_header_bytes);
  batch += records;
  log::put_u32(batch.data() + 8, static_cast<std::uint32_t>(batch.size() - 12));
  log::put_u16(batch.data() + 21, 4);
  log::put_u32(batch.data() + 17, crc32c(std::string_view(batch).substr(21)));
  return batch;
}

// Runs what was posted when the world says so. The tasks of a process die with it.
class ManualExecutor final : public log::Executor {
 public:
  void post(log::Task task) override { tasks_.push_back(std::move(task)); }
  void post_at(std::int64_t ticks_ns, log::Task task) override {
    later_.emplace(ticks_ns, std::move(task));
  }

  void run_all(std::int64_t now_ns) {
    for (;;) {
      while (!later_.empty() && later_.begin()->first <= now_ns) {
        tasks_.push_back(std::move(later_.begin()->second));
        later_.erase(later_.begin());
      }
      if (tasks_.empty()) return;
      const log::Task task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }
  void drop_all() {
    tasks_.clear();
    later_.clear();
  }

 private:
  std::deque<log::Task> tasks_;
  std::multimap<std::int64_t, log::Task> later_;
};

// A consumer that sleeps until the log has something for it.
struct Follower {
  std::int64_t offset = 0;
  bool is_asleep = false;
  std::map<std::int64_t, std::string> seen = {};
};

class DoorsWorld {
 public:
  explicit DoorsWorld(const DoorsOptions& options)
      : steps_(options.steps), context_(options.seed, options.verbose) {
    settings_.segment_bytes_max = context_.random.chance(700) ? 1024 : 16 << 10;
    settings_.gaps = static_cast<GapPolicy>(context_.random.below(2));
    settings_.random = [this] { return context_.random.next(); };
    for (std::size_t i = 0; i < 3; ++i) make_client(i);
    testing::SimFiles files(context_.disk);
    if (const auto made = log::create_topic(files, "data", "doors", {}, settings_.random); !made)
      violate("the topic cannot be made: " + made.error().text);
  }

  DoorsReport run() {
    for (std::uint32_t i = 0; i < steps_ && is_sound(); ++i) stir();
    if (is_sound() && !calm_down()) violate("liveness: messages are left after the faults");
    if (is_sound()) check_log();
    return {context_.history.violations(), context_.trace.reached()};
  }

 private:
  void make_client(std::size_t number) {
    Client client{.name = fmt::format("c{}", number), .sends_batches = number != 2};
    std::uint64_t begin = 0;
    for (int i = 0; i < 12; ++i) {
      const auto count = static_cast<std::uint32_t>(1 + context_.random.below(4));
      client.parcels.push_back(
          {.begin = begin,
           .count = count,
           .is_compressed = client.sends_batches && context_.random.chance(300)});
      begin += count;
    }
    clients_.push_back(std::move(client));
  }

  bool is_sound() const { return context_.history.violations().empty(); }
  void violate(std::string text) { context_.history.violate(std::move(text)); }

  // --- the process that owns the log

  void start() {
    files_ = std::make_unique<testing::SimFiles>(context_.disk);
    try {
      const DeathAtPoint death(context_.fault(50) ? 1 + context_.random.below(6) : 0);
      files_->die_at(context_.fault(60) ? 1 + context_.random.below(8) : 0);
      auto opened = log::Partition::open(*files_, context_.clock,
                                         log::partition_directory("data", "doors", 0), settings_);
      files_->die_at(0);
      if (!opened) {
        if (opened.error().tag == "corrupt" || context_.calm)
          violate("it cannot be opened: " + opened.error().text);
        return stop(false);
      }
      commit_ = std::make_unique<log::GroupCommit>(std::move(*opened), context_.clock, hold_ms,
                                                   &executor_);
    } catch (const SimulatedDeath&) {
      context_.trace.reached("dies in recovery");
      return stop(context_.random.chance(500));
    }
    check_log();
  }

  // The answers that were not given are lost; the clients will ask again.
  void stop(bool power_cut) {
    if (files_) files_->kill();
    is_listening_ = false;
    executor_.drop_all();
    commit_.reset();
    is_listening_ = true;
    for (Follower& follower : followers_) follower.is_asleep = false;
    files_.reset();
    if (!power_cut) return;
    context_.disk.power_cut();
    context_.trace.reached("power cut");
  }

  // Several requests at once: all are staged before the first is synced.
  void deliver(const std::vector<Request>& requests) {
    if (!commit_) return;
    try {
      const DeathAtPoint death(context_.fault(60) ? 1 + context_.random.below(5) : 0);
      files_->die_at(context_.fault(60) ? 1 + context_.random.below(6) : 0);
      for (const Request& request : requests) submit(request);
      executor_.run_all(context_.clock.ticks_ns());
      files_->die_at(0);
    } catch (const SimulatedDeath&) {
      context_.trace.reached("dies in an append");
      return stop(context_.random.chance(600));
    }
    check_followers();
    if (commit_->is_poisoned()) {
      check_log();  // what a failed sync has left must not be seen
      stop(context_.random.chance(500));
    }
  }

  // The request is gone before the answer comes.
  void submit(const Request& request) {
    log::Completion done = [this,
                            about = Request{request.client, request.parcel, request.stamp, {}, {}},
                            calls = std::make_shared<int>(0)](const Result<log::Verdict>& verdict) {
      if (++*calls > 1) violate("a completion was called twice");
      if (is_listening_) finish(about, verdict);
    };
    if (request.batch.empty()) {
      const std::vector<Message> messages = request.messages;
      return commit_->append({.stamp = request.stamp, .messages = messages}, std::move(done));
    }
    const std::string bytes = request.batch;
    const auto batch = log::check_raw_batch(bytes);
    if (!batch) return done(fail(batch.error()));
    commit_->append({.raw = &*batch}, std::move(done));
  }

  // --- followers

  void follow() {
    if (!commit_) return;
    Follower& follower = followers_[context_.random.below(followers_.size())];
    if (follower.is_asleep) return;
    if (!fetch(follower)) return;
    // Between its look and its subscription something may become durable.
    if (context_.random.chance(500)) send();
    if (!commit_ || follower.is_asleep) return;
    follower.is_asleep = true;
    (void)commit_->subscribe(follower.offset, [this, &follower](const Result<std::int64_t>& end) {
      if (!is_listening_) return;
      context_.trace.reached("woken");
      follower.is_asleep = false;
      if (end && *end <= follower.offset) violate("woken for nothing");
    });
    executor_.run_all(context_.clock.ticks_ns());
    check_followers();
  }

  bool fetch(Follower& follower) {
    for (;;) {
      const auto located = commit_->locate(follower.offset, 1 + context_.random.below(3000));
      const auto loaded = located ? log::load(*located) : fail(located.error());
      if (!loaded) {
        violate("a follower cannot read: " + loaded.error().text);
        return false;
      }
      if (loaded->batches.empty()) return true;
      std::vector<Stored> stored;
      std::int64_t offset = located->batches.front().base_offset;
      for (const std::string_view batch : loaded->batches) read_batch(batch, offset, stored);
      for (Stored& one : stored) follower.seen[one.offset] = std::move(one.id);
      follower.offset = located->end_offset;
    }
  }

  void check_followers() {
    const std::int64_t end = commit_->info().end_offset;
    for (const Follower& follower : followers_)
      if (follower.is_asleep && follower.offset < end)
        violate(fmt::format("a reader sleeps at {}, and {} is durable", follower.offset, end));
  }

  // --- clients

  void enter(Client& client) {
    if (!commit_) return;
    try {
      const DeathAtPoint death(context_.fault(50) ? 1 + context_.random.below(3) : 0);
      const auto stamp = commit_->enter(client.name);
      if (!stamp) {
        if (commit_->is_poisoned()) stop(context_.random.chance(500));
        return;
      }
      executor_.run_all(context_.clock.ticks_ns());
      if (stamp->epoch > 1) context_.trace.reached("a client comes back");
      client.stamp = *stamp;
    } catch (const SimulatedDeath&) {
      context_.trace.reached("dies in an entry");
      return stop(context_.random.chance(600));
    }
    // It learns what the log has of it: whole parcels, because each was one append.
    for (Parcel& parcel : client.parcels) {
      if (parcel.begin + parcel.count <= client.stamp->sequence)
        parcel.is_done = true;
      else if (parcel.begin < client.stamp->sequence)
        violate(fmt::format("a part of {} is in the log", client.id(parcel.begin)));
      else if (parcel.offset)
        violate(fmt::format("{} was acknowledged and is not known", client.id(parcel.begin)));
    }
  }

  std::optional<Request> next_request(std::size_t index, std::size_t ahead) {
    Client& client = clients_[index];
    if (!client.stamp) {
      enter(client);
      return std::nullopt;
    }
    const std::size_t number = client.next() + ahead;
    if (number >= client.parcels.size()) return std::nullopt;
    return request_of(index, number);
  }

  Request request_of(std::size_t index, std::size_t number) {
    const Client& client = clients_[index];
    const Parcel& parcel = client.parcels[number];
    Request request{index, number, *client.stamp, {}, {}};
    std::string records;
    for (std::uint64_t i = parcel.begin; i < parcel.begin + parcel.count; ++i) {
      request.messages.push_back({.id = client.id(i),
                                  .body = std::string(i * 37 % 200, 'x'),
                                  .timestamp_ms = 1'700'000'000'000});
      records += client.id(i) + ",";
    }
    // Absolute for messages; for batches from 0 in each epoch.
    request.stamp.sequence = parcel.begin;
    if (!client.sends_batches) return request;
    request.stamp.sequence -= client.stamp->sequence;
    log::Buffer buffer;
    log::encode_batch(buffer, 0, request.stamp, 1, request.messages);
    request.batch = buffer.view();
    if (parcel.is_compressed) request.batch = compressed(request.batch, records);
    return request;
  }

  void send() {
    std::vector<Request> together;
    const std::size_t index = context_.random.below(clients_.size());
    const std::size_t count = 1 + context_.random.below(3);
    for (std::size_t ahead = 0; ahead < count; ++ahead)
      if (auto request = next_request(index, ahead)) together.push_back(std::move(*request));
    while (!late_.empty() && context_.fault(200)) together.push_back(take_late());
    for (std::size_t i = together.size(); i-- > 0;) {
      if (context_.fault(100) && late_.size() < 20) late_.push_back(together[i]);
      if (context_.fault(50)) together.push_back(together[i]);
      if (context_.fault(60)) damage(together[i]);
    }
    if (together.size() > 1 && context_.fault(150)) std::swap(together.front(), together.back());
    deliver(together);
  }

  void damage(Request& request) {
    if (request.batch.empty()) return;
    // Behind what the log replaces anyway: offset and leader epoch.
    const std::size_t at = 16 + context_.random.below(request.batch.size() - 16);
    request.batch[at] = static_cast<char>(request.batch[at] ^ (1 << context_.random.below(8)));
    context_.trace.reached("damaged on its way");
  }

  Request take_late() {
    const std::size_t index = context_.random.below(late_.size());
    Request request = late_[index];
    late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(index));
    context_.trace.reached("late request");
    return request;
  }

  void finish(const Request& request, const Result<log::Verdict>& verdict) {
    Result<Receipt> answer = Receipt();
    if (verdict)
      answer = verdict->receipt();
    else
      answer = fail(verdict.error());
    Client& client = clients_[request.client];
    Parcel& parcel = client.parcels[request.parcel];
    context_.trace.note(
        "{} from {} in epoch {} sequence {}: {}", client.name, parcel.begin, request.stamp.epoch,
        request.stamp.sequence,
        answer ? fmt::format("offset {} duplicates {}", answer->offset, answer->duplicates)
               : answer.error().tag);
    if (!answer) {
      context_.trace.reached("refused: " + answer.error().tag);
      const bool is_over = answer.error().remedy == Remedy::stop;
      if (is_over && client.stamp && client.stamp->epoch == request.stamp.epoch)
        client.stamp.reset();
      return;
    }
    if (answer->duplicates > 0) context_.trace.reached("duplicate answered");
    if (answer->duplicates != 0 && answer->duplicates != parcel.count)
      violate(fmt::format("{} was divided", client.id(parcel.begin)));
    if (parcel.offset && *parcel.offset != answer->offset)
      violate(fmt::format("{} was answered with offset {} and later with {}",
                          client.id(parcel.begin), *parcel.offset, answer->offset));
    parcel.offset = answer->offset;
    parcel.is_done = true;
  }

  // --- the books

  void check_log() {
    std::vector<Stored> stored;
    const PartitionInfo info = commit_->info();
    std::int64_t offset = info.first_offset;
    while (offset < info.end_offset) {
      const auto located = commit_->locate(offset, 1 + context_.random.below(2000));
      const auto loaded = located ? log::load(*located) : fail(located.error());
      if (!loaded) return violate("it cannot be read: " + loaded.error().text);
      for (const std::string_view batch : loaded->batches) read_batch(batch, offset, stored);
      if (!is_sound()) return;
      if (located->end_offset != offset) return violate("a range ends elsewhere than its batches");
    }
    if (offset != info.end_offset) violate("more was handed out than is durable");
    for (const Client& client : clients_) check_client(client, stored);
    for (const Follower& follower : followers_) check_seen(follower, stored);
  }

  // What a follower was given is there for good.
  void check_seen(const Follower& follower, const std::vector<Stored>& stored) {
    for (const auto& [offset, id] : follower.seen) {
      const auto at = static_cast<std::size_t>(offset);
      if (at >= stored.size() || stored[at].id != id)
        violate(fmt::format("{} was handed out at {} and is gone", id, offset));
    }
  }

  void read_batch(std::string_view bytes, std::int64_t& offset, std::vector<Stored>& into) {
    const auto header = log::decode_batch_header(bytes);
    if (!header) return violate("a stored batch is malformed: " + header.error().text);
    if (header->base_offset != offset)
      return violate(fmt::format("offset {} follows on {}", header->base_offset, offset));
    std::vector<std::string> ids;
    if (header->is_compressed()) {
      std::string_view rest = bytes.substr(log::batch_header_bytes);
      for (std::size_t at; (at = rest.find(',')) != rest.npos; rest.remove_prefix(at + 1))
        ids.emplace_back(rest.substr(0, at));
    } else {
      log::Deliveries decoded;
      if (const auto done = log::decode_batch(bytes, {}, true, decoded); !done)
        return violate("a stored batch cannot be decoded: " + done.error().text);
      for (const Delivery& delivery : decoded.deliveries) ids.emplace_back(delivery.id);
    }
    if (ids.size() != header->count) return violate("a stored batch was changed");
    for (std::string& id : ids) into.push_back({offset++, std::move(id)});
  }

  // Loss, duplication, order.
  void check_client(const Client& client, const std::vector<Stored>& stored) {
    std::map<std::string, std::int64_t> places;
    std::uint64_t next = 0;
    for (const Stored& one : stored) {
      if (!one.id.starts_with(client.name + "-")) continue;
      if (!places.emplace(one.id, one.offset).second) violate(one.id + " is there twice");
      if (one.id != client.id(next))
        violate(fmt::format("{} follows where {} was expected", one.id, client.id(next)));
      ++next;
    }
    for (const Parcel& parcel : client.parcels)
      for (std::uint32_t i = 0; i < parcel.count && parcel.is_done; ++i) {
        const auto place = places.find(client.id(parcel.begin + i));
        if (place == places.end())
          violate(client.id(parcel.begin + i) + " was acknowledged and is gone");
        else if (parcel.offset && place->second != *parcel.offset + i)
          violate(fmt::format("{} is at {}, its receipt said {}", place->first, place->second,
                              *parcel.offset + i));
      }
  }

  // --- the world

  void stir() {
    const std::size_t drawn = context_.random.below(100);
    context_.clock.step(static_cast<std::int64_t>(context_.random.below(10)));
    if (!commit_) return start();
    if (drawn < 60) return send();
    if (drawn < 80) return follow();
    if (drawn < 86) return clients_[context_.random.below(clients_.size())].stamp.reset();
    if (drawn < 92) return stop(context_.random.chance(500));
    if (drawn < 95) return context_.disk.fail_next_sync();
    const auto room = static_cast<std::int64_t>(context_.random.below(3000));
    context_.disk.set_space_bytes_max(drawn < 97 ? context_.disk.used_bytes() + room : -1);
  }

  bool calm_down() {
    context_.calm = true;
    context_.disk.set_space_bytes_max(-1);
    context_.disk.fail_next_sync(false);
    stop(false);
    start();
    const auto is_done = [](const Client& client) {
      return client.next() == client.parcels.size();
    };
    for (int round = 0; round < calm_rounds_max && is_sound(); ++round) {
      if (std::all_of(clients_.begin(), clients_.end(), is_done)) return true;
      context_.clock.step(10);
      send();
      follow();
    }
    return !is_sound();
  }

  const std::uint32_t steps_;
  Context context_;
  log::PartitionOptions settings_;
  std::vector<Client> clients_;
  std::vector<Request> late_;
  std::unique_ptr<testing::SimFiles> files_;
  ManualExecutor executor_;
  bool is_listening_ = true;
  std::vector<Follower> followers_{2};
  std::unique_ptr<log::GroupCommit> commit_;
};

}  // namespace

DoorsReport run_doors_world(const DoorsOptions& options) { return DoorsWorld(options).run(); }

}  // namespace once::simulation
