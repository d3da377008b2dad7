// SPDX-License-Identifier: Apache-2.0
#include "log/topic_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mutant.h"
#include "model/random.h"

namespace once::log {

// While a name enters, its id is fixed; it may not be in any partition yet.
class TopicLog::Reservation {
 public:
  // With `next_epoch`, one that is larger than all that are known or being entered.
  static Result<std::unique_ptr<Reservation>> make(TopicLog& topic, std::string_view name,
                                                   bool next_epoch) {
    const std::lock_guard lock(topic.mutex_);
    auto entering = topic.entering_.find(name);
    if (entering == topic.entering_.end()) {
      Identity identity = topic.find(name);
      if (identity.id == 0) identity.id = ONCE_TRY(topic.draw());
      entering = topic.entering_.emplace(name, Entering{identity, 0}).first;
    }
    ++entering->second.users;
    if (next_epoch) ++entering->second.identity.epoch;
    return std::unique_ptr<Reservation>(
        new Reservation(topic, std::string(name), entering->second.identity));
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    const std::lock_guard lock(topic_.mutex_);
    const auto entering = topic_.entering_.find(name_);
    if (--entering->second.users == 0) topic_.entering_.erase(entering);
  }

  const Identity& identity() const { return identity_; }

 private:
  Reservation(TopicLog& topic, std::string name, Identity identity)
      : topic_(topic), name_(std::move(name)), identity_(identity) {}

  TopicLog& topic_;
  const std::string name_;
  const Identity identity_;
};

Result<std::unique_ptr<TopicLog>> TopicLog::open(Files& files, const std::string& directory,
                                                 const std::string& topic, Clock& clock,
                                                 const Random& random, Executor* executor) {
  (void)ONCE_TRY(read_topic(files, directory, topic));  // before the lock makes its directory
  auto lock = ONCE_TRY(files.open(lock_path(directory, topic), OpenMode::lock));
  const TopicFile file = ONCE_TRY(read_topic(files, directory, topic));
  const TopicOptions& options = file.options;
  constexpr std::int64_t hold_ms_max = 10'000;
  PartitionOptions chosen;
  chosen.must_exist = file.is_written;
  chosen.segment_bytes_max = options.segment_bytes_max;
  chosen.retention_ms = options.retention_ms;
  chosen.retention_bytes = options.retention_bytes;
  chosen.gaps = options.gaps;
  chosen.random = random;
  std::vector<std::unique_ptr<GroupCommit>> partitions;
  for (std::uint32_t i = 0; i < options.partitions; ++i)
    partitions.push_back(std::make_unique<GroupCommit>(
        ONCE_TRY(Partition::open(files, clock, partition_directory(directory, topic, i), chosen)),
        system_clock(), hold_ms_max, executor));
  ONCE_TRY(mark_written(files, directory, topic, file, random));
  return std::unique_ptr<TopicLog>(
      new TopicLog(std::move(lock), topic, random, std::move(partitions)));
}

TopicLog::TopicLog(std::unique_ptr<File> lock, std::string name, Random random,
                   std::vector<std::unique_ptr<GroupCommit>> partitions)
    : lock_(std::move(lock)),
      name_(std::move(name)),
      random_(random ? std::move(random) : random_number),
      partitions_(std::move(partitions)),
      aliases_(partitions_.size()) {
  find_aliases();
}

TopicLog::~TopicLog() {
  for (const auto& partition : partitions_) (void)partition->close();
}

Result<GroupCommit*> TopicLog::partition(std::uint32_t number) {
  if (number < partitions_.size()) return partitions_[number].get();
  return fail(
      Remedy::stop, "partition",
      fmt::format("topic {} has no partition {}: it has {}", name_, number, partitions_.size()));
}

// --- producers

void TopicLog::find_aliases() {
  std::map<std::string, std::uint64_t, std::less<>> ids;
  for (std::size_t i = 0; i < partitions_.size(); ++i)
    for (const auto& [name, id] : partitions_[i]->producers()) {
      const std::uint64_t shared = ids.emplace(name, id).first->second;
      if (shared != id) aliases_[i].emplace(shared, id);
    }
}

std::uint64_t TopicLog::local_id(std::uint32_t number, std::uint64_t id) const {
  const auto found = aliases_[number].find(id);
  return found == aliases_[number].end() ? id : found->second;
}

// The id of the first partition that knows the name, and the largest epoch of all.
Identity TopicLog::find(std::string_view name) {
  Identity found;
  for (const auto& partition : partitions_) {
    const Identity here = partition->identity_of(name);
    if (found.id == 0) found.id = here.id;
    found.epoch = std::max(found.epoch, here.epoch);
  }
  return found;
}

// One that no partition knows. 63 bits, because record batches keep it as a signed number.
Result<std::uint64_t> TopicLog::draw() {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::uint64_t id = random_() >> 1;
    const bool is_taken = std::any_of(partitions_.begin(), partitions_.end(),
                                      [&](const auto& partition) { return partition->knows(id); });
    if (id != 0 && !is_taken) return id;
  }
  return fail(Remedy::stop, "random", "the source of random numbers repeats itself");
}

Result<Stamp> TopicLog::enter(std::uint32_t number, std::string_view name) {
  GroupCommit* const here = ONCE_TRY(partition(number));
  if (name.empty() || mutant(Mutant::producer_id_per_partition)) return here->enter(name);
  const auto reserved = ONCE_TRY(Reservation::make(*this, name, false));
  return here->enter(name, {reserved->identity().id, 0});
}

Result<Identity> TopicLog::enter_topic(std::string_view name) {
  const auto reserved = ONCE_TRY(Reservation::make(*this, name, true));
  const Identity identity = reserved->identity();
  // Where it is made known first, so that a crash does not forget it; then wherever it was known.
  const std::uint32_t home = crc32c(name) % partition_count();
  ONCE_TRY(admit(home, name, identity));
  for (std::uint32_t i = 0; i < partition_count(); ++i)
    if (i != home && partitions_[i]->identity_of(name).id != 0) ONCE_TRY(admit(i, name, identity));
  return identity;
}

Result<Stamp> TopicLog::admit(std::uint32_t number, std::string_view name,
                              const Identity& identity) {
  GroupCommit* const here = ONCE_TRY(partition(number));
  if (name.empty() || identity.id == 0 || identity.epoch == 0)
    return fail(Remedy::stop, "name",
                "only a producer with a name, an id and an epoch is admitted");
  const std::uint64_t local = local_id(number, identity.id);
  const Identity known = here->identity_of(name);
  if (known.id != 0 && known.id != local)
    return fail(Remedy::stop, "unknown",
                fmt::format("{}/{}: producer {} has the id {:x} here, not {:x}; enter again", name_,
                            number, name, known.id, local));
  if (known.epoch > identity.epoch)
    return fail(Remedy::stop, "fenced",
                fmt::format("{}/{}: producer {} epoch {} is over: epoch {} has entered", name_,
                            number, name, identity.epoch, known.epoch));
  if (known.epoch == identity.epoch) return Stamp{local, identity.epoch, here->next_sequence(name)};
  const Stamp entered = ONCE_TRY(here->enter(name, {local, identity.epoch}));
  // Somebody else may have entered between the look and the entry.
  if (entered.epoch == identity.epoch) return entered;
  return fail(Remedy::stop, "fenced",
              fmt::format("{}/{}: producer {} epoch {} is over: another one has entered", name_,
                          number, name, identity.epoch));
}

// --- appends

void TopicLog::translate(std::uint32_t number, Append& append, RawBatch& raw) const {
  if (aliases_[number].empty()) return;
  append.stamp.producer = local_id(number, append.stamp.producer);
  if (append.raw == nullptr || !append.raw->has_producer()) return;
  raw = *append.raw;
  const auto id = static_cast<std::uint64_t>(raw.header.producer);
  raw.header.producer = static_cast<std::int64_t>(local_id(number, id));
  append.raw = &raw;
}

Result<Verdict> TopicLog::append(std::uint32_t number, Append append) {
  GroupCommit* const here = ONCE_TRY(partition(number));
  RawBatch raw;
  translate(number, append, raw);
  return here->append(append);
}

void TopicLog::append(std::uint32_t number, Append append, Completion done) {
  ONCE_ASSERT(number < partitions_.size());
  RawBatch raw;
  translate(number, append, raw);
  partitions_[number]->append(append, std::move(done));
}

}  // namespace once::log
