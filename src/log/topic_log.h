// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/log.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "log/group_commit.h"
#include "log/topic.h"

namespace once::log {

// The writing end of a topic: its partitions, and the producers that they have in common. A server
// uses it directly; LogSink is the contract's view of it. Holds the lock of the topic as long as it
// lives. Thread-safe.
//
// A producer with a name has one id in all partitions. It is not kept anywhere else: a name has the
// id that the first partition gives it that knows it, and a new one is drawn when none does. Logs
// of older versions may have other ids for a name in other partitions. These stay what they are:
// appends with the id of the topic are translated.
class TopicLog {
 public:
  // Without an executor there are only calls that wait.
  [[nodiscard]] static Result<std::unique_ptr<TopicLog>> open(
      Files& files, const std::string& directory, const std::string& topic, Clock& clock,
      const Random& random = {}, Executor* executor = nullptr);
  TopicLog(const TopicLog&) = delete;
  TopicLog& operator=(const TopicLog&) = delete;
  // Closes the partitions. What cannot be closed is recovered at the next opening.
  ~TopicLog();

  std::uint32_t partition_count() const { return static_cast<std::uint32_t>(partitions_.size()); }
  // "partition" when there is none with this number.
  [[nodiscard]] Result<GroupCommit*> partition(std::uint32_t number);

  // The producer with this name enters one partition, with an epoch of its own there. Without a
  // name it is a guest of that partition.
  [[nodiscard]] Result<Stamp> enter(std::uint32_t number, std::string_view name);

  // A new epoch of this producer for all partitions, larger than any before. When it returns, it is
  // durable in one partition at least, and the smaller ones are fenced wherever the name is known.
  [[nodiscard]] Result<Identity> enter_topic(std::string_view name);
  // Makes what `enter_topic` gave known in a partition, before its first append there; nothing is
  // written when it is. The sequence of the stamp is the next one. "fenced" behind a later epoch.
  [[nodiscard]] Result<Stamp> admit(std::uint32_t number, std::string_view name,
                                    const Identity& identity);

  // As in GroupCommit. The producer is that of the topic.
  [[nodiscard]] Result<Verdict> append(std::uint32_t number, Append append);
  void append(std::uint32_t number, Append append, Completion done);

 private:
  // The ids under which a partition of an older version knows producers, by that of the topic.
  using Aliases = std::map<std::uint64_t, std::uint64_t>;
  struct Entering {
    Identity identity;
    std::uint32_t users = 0;
  };
  class Reservation;

  TopicLog(std::unique_ptr<File> lock, std::string name, Random random,
           std::vector<std::unique_ptr<GroupCommit>> partitions);

  void find_aliases();
  Identity find(std::string_view name);
  Result<std::uint64_t> draw();
  std::uint64_t local_id(std::uint32_t number, std::uint64_t id) const;
  // Appends under the id that the partition has. `raw` is where a changed batch is kept.
  void translate(std::uint32_t number, Append& append, RawBatch& raw) const;

  std::unique_ptr<File> lock_;
  const std::string name_;
  const Random random_;
  const std::vector<std::unique_ptr<GroupCommit>> partitions_;
  std::vector<Aliases> aliases_;  // by partition; does not change

  // Taken before the mutex of a partition, and never held during I/O.
  std::mutex mutex_;
  std::map<std::string, Entering, std::less<>> entering_;  // so that all get the same id
};

}  // namespace once::log
