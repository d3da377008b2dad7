// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/transaction.h>
#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "model/compact_id.h"
#include "model/message_row.h"

namespace once {

// Lets one statement record many ids: the entries are the rows of the table `once_entries`. That is
// half the work of a statement for each. A statement that fails at a row can be run again for the
// rows behind it. Belongs to one connection and is used by its thread; outside of an admit the
// table is empty.
class EntryFeed {
 public:
  struct Row {
    std::uint32_t index = 0;  // of the entry
    std::int64_t partition = 0;
  };

  EntryFeed() = default;
  EntryFeed(const EntryFeed&) = delete;
  EntryFeed& operator=(const EntryFeed&) = delete;

  // Makes the table known to a connection, which must not outlive the feed. SQLite's code.
  [[nodiscard]] int attach(sqlite3* handle);

  // The table has these rows for as long as this object lives.
  class Opened {
   public:
    Opened(EntryFeed& feed, std::span<const Entry> entries, std::span<const Row> rows)
        : feed_(feed) {
      feed_.set(entries, rows);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() { feed_.set({}, {}); }

   private:
    EntryFeed& feed_;
  };

  // The row that SQLite has come to. A new statement begins there.
  bool at_end() const { return next_ >= rows_.size(); }
  const Row& row() const { return rows_[next_]; }
  const Entry& entry() const { return entries_[row().index]; }
  void skip() { ++next_; }

  void column(sqlite3_context* context, int number);

 private:
  void set(std::span<const Entry> entries, std::span<const Row> rows);

  std::span<const Entry> entries_;
  std::span<const Row> rows_;
  std::size_t next_ = 0;
  // Of the present row.
  std::optional<CompactId> id_;
  FingerprintBytes fingerprint_{};
};

}  // namespace once
