// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/source.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once::bench {

inline constexpr std::int64_t account_count = 10'000;
inline constexpr std::size_t body_bytes = 100;
inline constexpr std::string_view update_account =
    "UPDATE account SET balance = balance + ? WHERE number = ?";
inline constexpr const char* create_accounts =
    "CREATE TABLE account (number INTEGER PRIMARY KEY, balance INTEGER NOT NULL);"
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)"
    "INSERT INTO account SELECT i, 0 FROM n";

// A database is filled with the first settings and measured with the second.
inline constexpr const char* fast_settings =
    "PRAGMA journal_mode = DELETE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
    "PRAGMA cache_size = -262144";
inline constexpr const char* safe_settings =
    "PRAGMA synchronous = FULL; PRAGMA journal_mode = WAL; PRAGMA cache_size = -65536;"
    "PRAGMA wal_autocheckpoint = 8192";

// How the ids of the messages are spread: it decides which pages of a ledger are touched.
enum class IdKind : std::uint8_t {
  uuid7,   // in order of time: new ones are neighbours
  random,  // all over the place: 128 random bits
};

// The message number `number` of a load: a payment to an account chosen by its number, with a
// body of 100 bytes. The same number always gives the same message.
Message make_message(IdKind kind, std::uint64_t number);
std::string make_id(IdKind kind, std::uint64_t number);
std::int64_t born_ms(std::uint64_t number);
// As many ids as a ledger that has seen `count` messages, in an order in which they can be put in
// quickly; afterwards its pages are as full as if they had come one by one. None of them is the id
// of a message that is numbered `count` or higher.
void for_each_id(IdKind kind, std::uint64_t count, const std::function<void(std::string)>& use);
std::vector<Message> make_messages(IdKind kind, std::uint64_t first, std::size_t count);

std::uint64_t scramble(std::uint64_t number);  // a bijection that looks random

// What the message does, for our handler and the peers alike.
std::int64_t account_of(std::string_view key);

// Messages in memory as a source, which ends with the last of them; each goes to the partition of
// its key, as with a broker. `messages` outlive it.
class LoadSource final : public Source, public SourceReplay {
 public:
  explicit LoadSource(const std::vector<Message>& messages, std::size_t partitions = 1);

  SourceReplay* replay() override { return this; }
  SourceTraits traits() const override;
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override;
  Status ack(std::span<const Delivery>) override { return {}; }
  Status release(std::span<const Delivery>, std::int64_t) override { return {}; }
  Status seek(std::string_view name, std::int64_t offset) override;

 private:
  struct Partition {
    std::string name;
    std::vector<const Message*> messages;
    // The offset of the first message: behind what was read last, which this source does not have.
    std::int64_t base = 0;
    std::size_t next = 0;
  };
  static Batch next_of(Partition& partition, std::size_t count_max);

  std::vector<Partition> partitions_;
  std::size_t announced_ = 0;
  std::size_t turn_ = 0;
};

}  // namespace once::bench
