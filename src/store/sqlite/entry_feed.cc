// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/entry_feed.h"

#include "model/ledger.h"

namespace once {
namespace {

// What SQLite calls to read the table. There is one cursor at a time, and the feed is its place.
struct Calls {
  struct Table {
    sqlite3_vtab base;
    EntryFeed* feed;
  };

  static EntryFeed& feed_of(sqlite3_vtab_cursor* cursor) {
    return *reinterpret_cast<Table*>(cursor->pVtab)->feed;
  }

  static int connect(sqlite3* handle, void* feed, int, const char* const*, sqlite3_vtab** table,
                     char**) {
    const int code = sqlite3_declare_vtab(
        handle, "CREATE TABLE entries (id, fingerprint, born_ms, partition, offset)");
    if (code != SQLITE_OK) return code;
    *table = &(new Table{{}, static_cast<EntryFeed*>(feed)})->base;
    return SQLITE_OK;
  }
  static int disconnect(sqlite3_vtab* table) {
    delete reinterpret_cast<Table*>(table);
    return SQLITE_OK;
  }
  static int plan(sqlite3_vtab*, sqlite3_index_info* info) {
    info->estimatedCost = 1000;
    return SQLITE_OK;
  }
  static int open(sqlite3_vtab*, sqlite3_vtab_cursor** cursor) {
    *cursor = new sqlite3_vtab_cursor{};
    return SQLITE_OK;
  }
  static int close(sqlite3_vtab_cursor* cursor) {
    delete cursor;
    return SQLITE_OK;
  }
  static int begin(sqlite3_vtab_cursor*, int, const char*, int, sqlite3_value**) {
    return SQLITE_OK;
  }
  static int next(sqlite3_vtab_cursor* cursor) {
    feed_of(cursor).skip();
    return SQLITE_OK;
  }
  static int at_end(sqlite3_vtab_cursor* cursor) { return feed_of(cursor).at_end() ? 1 : 0; }
  static int column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int number) {
    feed_of(cursor).column(context, number);
    return SQLITE_OK;
  }
  static int row_number(sqlite3_vtab_cursor* cursor, sqlite3_int64* number) {
    *number = feed_of(cursor).row().index;
    return SQLITE_OK;
  }
  static const sqlite3_module* module() {
    static const sqlite3_module module = [] {
      sqlite3_module calls{};
      calls.xConnect = connect;
      calls.xBestIndex = plan;
      calls.xDisconnect = disconnect;
      calls.xOpen = open;
      calls.xClose = close;
      calls.xFilter = begin;
      calls.xNext = next;
      calls.xEof = at_end;
      calls.xColumn = column;
      calls.xRowid = row_number;
      return calls;
    }();
    return &module;
  }
};

}  // namespace

int EntryFeed::attach(sqlite3* handle) {
  return sqlite3_create_module(handle, "once_entries", Calls::module(), this);
}

void EntryFeed::set(std::span<const Entry> entries, std::span<const Row> rows) {
  entries_ = entries;
  rows_ = rows;
  next_ = 0;
}

void EntryFeed::column(sqlite3_context* context, int number) {
  const Entry& present = entry();
  switch (number) {
    case 0:
      id_.emplace(present.id);
      sqlite3_result_blob64(context, id_->bytes().data(), id_->bytes().size(), SQLITE_STATIC);
      break;
    case 1:
      if (present.fingerprint.version == 0) break;  // NULL
      fingerprint_ = bytes_of(present.fingerprint);
      sqlite3_result_blob(context, fingerprint_.data(), static_cast<int>(fingerprint_.size()),
                          SQLITE_STATIC);
      break;
    case 2: sqlite3_result_int64(context, ledger_time(present.born_ms)); break;
    case 3: sqlite3_result_int64(context, row().partition); break;
    default: sqlite3_result_int64(context, present.offset);
  }
}

}  // namespace once
