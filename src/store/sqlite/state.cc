// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/state.h"

#include <sqlite3.h>

#include <memory>
#include <string>

#include "base/can_create.h"
#include "base/file.h"
#include "model/own_tables.h"
#include "store/sqlite/error.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite.h"

namespace once {
namespace {

struct Close {
  void operator()(sqlite3* handle) const { sqlite3_close(handle); }
};
using Handle = std::unique_ptr<sqlite3, Close>;

// A connection that changes no setting of the file; those of a store turn on its write-ahead log.
Result<Handle> open_plainly(const std::string& path) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  Handle handle(opened);
  constexpr int busy_ms = 10'000;
  if (code == SQLITE_OK) sqlite3_busy_timeout(opened, busy_ms);
  if (code == SQLITE_OK) return handle;
  return fail(error_from_sqlite(failure_of(code, handle.get()), SqliteStage::open, "sqlite:" + path,
                                "open"));
}

// The value that a query answers; empty: no row.
Result<std::string> value_of(sqlite3* handle, const std::string& path, const std::string& query) {
  sqlite3_stmt* prepared = nullptr;
  int code = sqlite3_prepare_v2(handle, query.c_str(), -1, &prepared, nullptr);
  std::string value;
  if (code == SQLITE_OK) code = sqlite3_step(prepared);
  if (code == SQLITE_ROW)
    if (const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(prepared, 0)))
      value = text;
  sqlite3_finalize(prepared);
  if (code == SQLITE_ROW || code == SQLITE_DONE) return value;
  return fail(error_from_sqlite(failure_of(code, handle), SqliteStage::open, "sqlite:" + path,
                                "look into it"));
}

}  // namespace

Result<StoreState> sqlite_store_state(const std::string& path) {
  const auto file = system_files().open(path, OpenMode::read);
  if (!file && file.error().tag == "missing") return StoreState::none;
  if (!file) return fail(file.error());
  const Handle handle = ONCE_TRY(open_plainly(path));
  const std::string schema =
      ONCE_TRY(value_of(handle.get(), path,
                        "SELECT name FROM sqlite_master WHERE type = 'table' AND "
                        "name = 'once_schema'"));
  if (schema.empty()) {
    const std::string foreign = ONCE_TRY(value_of(handle.get(), path, foreign_table_query()));
    if (!foreign.empty()) return fail(foreign_table_error("sqlite:" + path, foreign));
    return StoreState::none;
  }
  const std::string version =
      ONCE_TRY(value_of(handle.get(), path, "SELECT CAST(version AS INTEGER) FROM once_schema"));
  return store_state(version.empty() ? 0 : std::stoull(version), schema_steps.size());
}

Result<std::unique_ptr<Store>> open_sqlite_store_to_look(const std::string& path) {
  const auto file = system_files().open(path, OpenMode::read);
  if (!file && file.error().tag == "missing") ONCE_TRY(check_can_create(path));
  return SqliteStore::open(path, {.makes_tables = false}, system_clock());
}

}  // namespace once
