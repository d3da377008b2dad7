// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/key_value.h>
#include <once/records.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/resuming.h"
#include "store/redis/command.h"
#include "store/redis/redis.h"

namespace once {

// A transaction of a RedisStore: what it read and what it will write, until `commit` has a script
// check the one and do the other. `admit` and the first `get` of a key are a round trip, all other
// calls are none. Used by one thread.
class RedisTransaction final : public KeyValueTransaction, private Resuming {
 public:
  RedisTransaction(RedisStore& store, std::string_view scope) : store_(store), scope_(scope) {}

  Status advance(std::string_view partition, const Position& from, std::int64_t to,
                 const Progress& progress = {}) override;
  Result<std::vector<Verdict>> admit(std::span<const Entry> entries) override;
  Status settle(const Delivery& delivery, const Outcome& outcome) override;
  Status enqueue(std::string_view destination, const Message& message) override;
  Status commit() override;

  Result<std::optional<std::string>> get(std::string_view key) override;
  Status put(std::string_view key, std::string_view value) override;
  Status erase(std::string_view key) override;
  Status command(std::span<const std::string> words, const ExpectReply& expect) override;

 private:
  struct Move {
    Position from;  // what is committed, if it is still ours
    Position to;
    Progress progress;
  };
  struct Parked {
    ParkedRecord record;  // the number and the time are the script's
    std::string headers;
  };
  struct Enqueued {
    std::size_t destination;
    Message message;
    std::string headers;
  };
  struct Write {
    std::optional<std::string> value;
    std::optional<std::size_t> message;  // whose it is
  };
  struct Deferred {
    std::uint32_t attempts;
    std::int64_t after_ms;
    std::string token;
    std::string reason;
    std::string rest;
  };
  struct Change {  // of a deferred message
    bool waits;
    std::uint32_t attempts;
    std::int64_t after_ms;
    std::string reason;
  };
  // Questions whose answers are fetched together.
  struct AskedGone {
    Deferral deferral;
    std::string_view id;
    bool* gone;
  };
  struct AskedBehind {
    std::string token;
    std::int64_t number;
    Verdict* verdict;
  };
  // What the ledger said about the ids of a span.
  struct Looked {
    std::unordered_map<std::string_view, LedgerRecord> records;
    std::int64_t horizon_ms = 0;
    std::int64_t now_ms = 0;
  };

  Status check_open() const;
  // Keeps the error for all later calls.
  template <class T>
  Result<T> keep(Result<T> result) {
    if (!result) doom_ = result.error();
    return result;
  }
  Result<Looked> look(std::span<const Entry> entries);
  Verdict verdict_of(const Entry& entry, const Looked& looked);
  void park(const Delivery& delivery, const std::string& reason);
  // Messages that wait (deferrals.cc).
  Result<std::vector<Verdict>> admit_plain(std::span<const Entry> entries) override;
  Status ask_gone(const Entry& entry, bool& gone) override;
  Status resume(const Entry& entry, Outcome::Kind from) override;
  Status ask_behind(const Entry& entry, Verdict& verdict) override;
  Status await_answers() override;
  void change_deferral(const Delivery& delivery, const Outcome& outcome);
  void add_deferrals(RedisCall& call) const;
  tl::unexpected<Error> refused_key(std::string text) const;
  Result<std::string> full_key(std::string_view key) const;
  Status write(std::string_view key, std::optional<std::string> value);
  Status command_now(std::span<const std::string> words, const ExpectReply& expect);
  tl::unexpected<Error> used_twice(std::string_view key) const;
  void add_commands(RedisCall& call) const;
  Status refused_command(const RedisAnswer& answer) const;
  Result<std::optional<std::string>> get_now(std::string_view key);
  bool is_empty() const;
  Result<RedisCall> commit_call() const;
  std::vector<std::string> commit_keys() const;
  void add_moves(RedisCall& call) const;
  void add_rows(RedisCall& call) const;
  Status commit_now();
  Status refused(const RedisAnswer& answer) const;

  RedisStore& store_;
  const std::string scope_;
  bool committed_ = false;
  std::optional<Error> doom_;

  std::map<std::string, Move, std::less<>> moves_;
  std::unordered_map<std::string, LedgerRecord> fresh_;         // by id
  std::vector<std::pair<std::string, std::int64_t>> freed_;     // admitted, then without an effect
  std::map<std::string, LedgerRecord, std::less<>> resumable_;  // records that may be had again ...
  std::map<std::string, Outcome::Kind, std::less<>> resumed_;   // ... and were, with their outcome
  std::map<std::int64_t, std::uint32_t> due_;  // deferrals that were admitted, with their attempts
  std::map<std::int64_t, Change> changes_;
  std::vector<Deferred> deferred_;
  std::vector<AskedGone> asked_gone_;
  std::vector<AskedBehind> asked_behind_;
  std::vector<Parked> parked_;
  std::vector<std::string> destinations_;
  std::vector<Enqueued> enqueued_;
  std::map<std::string, std::optional<std::string>, std::less<>> read_;  // by the full key
  std::map<std::string, Write, std::less<>> written_;
  std::vector<RedisCommand> commands_;
  std::vector<std::string> command_keys_;
  std::unordered_map<std::string, std::size_t> command_key_places_;
};

}  // namespace once
