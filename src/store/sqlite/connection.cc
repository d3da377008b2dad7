// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <variant>

#include "base/assert.h"
#include "base/mutant.h"
#include "store/sqlite/schema.h"

namespace once {
namespace {

constexpr std::size_t cached_statements_max = 256;

// SQLite takes a null pointer for NULL, and an empty view may have one.
const char* address_of(std::string_view bytes) { return bytes.empty() ? "" : bytes.data(); }

bool is_one_of_ours(const char* table) {
  const std::string_view name = table == nullptr ? "" : table;
  // Id makers draw their ranges through the transaction that anyone gets.
  return name.starts_with("once_") && name != "once_counter";
}

// SQLite would let everybody read a new file; what it puts beside it has the rights of the file.
// One that is there, or cannot be made, is SQLite's to open or to complain about.
void make_private(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor >= 0) ::close(descriptor);
}

}  // namespace

void Statement::bind_text(int index, std::string_view text) {
  sqlite3_bind_text64(handle_, index, address_of(text), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void Statement::bind_blob(int index, std::string_view bytes) {
  sqlite3_bind_blob64(handle_, index, address_of(bytes), bytes.size(), SQLITE_STATIC);
}

void Statement::bind(std::span<const Value> values) {
  struct Binder {
    Statement& statement;
    int index;
    void operator()(std::nullptr_t) const { statement.bind_null(index); }
    void operator()(std::int64_t number) const { statement.bind(index, number); }
    void operator()(double number) const { sqlite3_bind_double(statement.handle_, index, number); }
    void operator()(std::string_view text) const { statement.bind_text(index, text); }
    void operator()(Blob blob) const { statement.bind_blob(index, blob.bytes); }
    void operator()(Decimal decimal) const { statement.bind_text(index, decimal.digits); }
  };
  int index = 0;
  for (const Value& value : values) std::visit(Binder{*this, ++index}, value.variant());
}

std::string_view Statement::bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(handle_, column));
  const int size = sqlite3_column_bytes(handle_, column);
  return {data == nullptr ? "" : data, static_cast<std::size_t>(size)};
}

Row Statement::row() const {
  Row row;
  const int columns = sqlite3_column_count(handle_);
  row.reserve(static_cast<std::size_t>(columns));
  for (int column = 0; column < columns; ++column) {
    switch (sqlite3_column_type(handle_, column)) {
      case SQLITE_INTEGER: row.emplace_back(number(column)); break;
      case SQLITE_FLOAT: row.emplace_back(sqlite3_column_double(handle_, column)); break;
      case SQLITE_NULL: row.emplace_back(nullptr); break;
      default: row.emplace_back(std::string(bytes(column)));
    }
  }
  return row;
}

Result<std::unique_ptr<Connection>> Connection::open(const std::string& path,
                                                     const ConnectionOptions& options) {
  if (options.writes) make_private(path);
  const std::string where = "sqlite:" + path;
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (options.writes ? SQLITE_OPEN_CREATE : 0);
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  if (handle == nullptr)
    return fail(error_from_sqlite(failure_of(code, handle), SqliteStage::open, where, "open"));
  // From here on the connection closes the handle.
  std::unique_ptr<Connection> connection(new Connection(where, handle));
  if (code != SQLITE_OK) return fail(connection->error(code, "open", SqliteStage::open));
  ONCE_TRY(connection->configure(options));
  return connection;
}

Status Connection::configure(const ConnectionOptions& options) {
  sqlite3_busy_timeout(handle_, static_cast<int>(options.busy_ms_max));
  if (!options.looks_only) ONCE_TRY(configure_file(options));
  sqlite3_set_authorizer(handle_, authorize, this);
  return {};
}

Status Connection::configure_file(const ConnectionOptions& options) {
  // SQLite before 3.51.3 can damage a file when one connection checkpoints while another writes:
  // only the writer does, and only while nobody else may write.
  sqlite3_wal_hook(handle_, remember_wal_pages, this);
  if (!options.writes) sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  // Off by default, also where the library was built so. What breaks a key already stays as it is.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_FKEY, 1, nullptr);
  ONCE_TRY(query("PRAGMA mmap_size = 0"));
  ONCE_TRY(run(fmt::format("PRAGMA cache_size = -{}", options.cache_bytes_max / 1024)));

  const Rows mode = ONCE_TRY(query("PRAGMA journal_mode = WAL"));
  const auto* journal = mode.empty() ? nullptr : std::get_if<std::string>(&mode[0][0]);
  if (journal == nullptr || *journal != "wal")
    return fail(Remedy::stop, "unsafe",
                fmt::format("{}: the journal mode is {}, and only WAL is safe; use a local file",
                            where_, journal == nullptr ? "unknown" : *journal));
  ONCE_TRY(run("PRAGMA synchronous = " + options.synchronous));
  const Rows synchronous = ONCE_TRY(query("PRAGMA synchronous"));
  const auto* level = synchronous.empty() ? nullptr : std::get_if<std::int64_t>(&synchronous[0][0]);
  constexpr std::int64_t full = 2;
  if (!mutant(Mutant::unsafe_sync_mode_accepted) && (level == nullptr || *level < full))
    return fail(Remedy::stop, "unsafe",
                fmt::format("{}: synchronous is {}, and less than FULL loses commits in a power "
                            "cut; set it to FULL",
                            where_, level == nullptr ? -1 : *level));
  if (!options.writes) ONCE_TRY(run("PRAGMA query_only = 1"));
  if (const int code = add_schema_functions(handle_); code != SQLITE_OK)
    return fail(error(code, "add functions", SqliteStage::open));
  if (const int code = feed_.attach(handle_); code != SQLITE_OK)
    return fail(error(code, "make the table of entries", SqliteStage::open));
  return {};
}

Connection::~Connection() {
  for (Cache& cache : caches_) clear(cache);
  ONCE_ASSERT(sqlite3_close(handle_) == SQLITE_OK);
}

Result<Statement> Connection::prepare(std::string_view sql, Side side) {
  side_ = side;  // a statement may be compiled again while it runs, when a table has changed
  Cache& cache = caches_[static_cast<std::size_t>(side)];
  const auto spot = reinterpret_cast<std::uintptr_t>(sql.data());
  Slot& slot = cache.slots[(spot >> 3 ^ spot >> 9 ^ sql.size()) % cache.slots.size()];
  if (slot.address == sql.data() && slot.text == sql) return Statement(slot.handle);
  auto found = cache.by_text.find(std::string(sql));
  if (found == cache.by_text.end()) {
    if (cache.by_text.size() == cached_statements_max) clear(cache);
    sqlite3_stmt* handle = ONCE_TRY(compile(sql, cache));
    found = cache.by_text.emplace(sql, handle).first;
  }
  slot = {sql.data(), found->first, found->second};
  return Statement(found->second);
}

Result<sqlite3_stmt*> Connection::compile(std::string_view sql, Cache&) {
  sqlite3_stmt* handle = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v3(handle_, address_of(sql), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &handle, &tail);
  if (code != SQLITE_OK) return fail(error(code, fmt::format("prepare \"{}\"", sql)));
  const auto used = static_cast<std::size_t>(tail - address_of(sql));
  const bool more = sql.find_first_not_of(" \t\r\n;", used) != std::string_view::npos;
  if (handle == nullptr || more) {
    sqlite3_finalize(handle);
    return fail(Remedy::stop, "sql",
                fmt::format("{}: \"{}\" is not one statement; split it", where_, sql));
  }
  return handle;
}

void Connection::clear(Cache& cache) {
  for (auto& [text, handle] : cache.by_text) sqlite3_finalize(handle);
  cache.by_text.clear();
  cache.slots = {};
}

Status Connection::run(std::string_view sql, std::initializer_list<Value> values) {
  ONCE_TRY(query(sql, values));
  return {};
}

Result<Rows> Connection::query(std::string_view sql, std::initializer_list<Value> values) {
  Statement statement = ONCE_TRY(prepare(sql));
  ONCE_ASSERT(statement.parameters() == values.size());
  statement.bind(std::span(values.begin(), values.size()));
  return rows(statement);
}

Result<Rows> Connection::rows(Statement& statement) {
  Rows rows;
  for (;;) {
    const int code = statement.step();
    if (code == SQLITE_DONE) return rows;
    if (code != SQLITE_ROW) return fail(error_of(statement, code, "run a statement"));
    rows.push_back(statement.row());
  }
}

Status Connection::script(const std::string& sql) {
  side_ = Side::ours;
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail(error(code, "make the schema"));
  return {};
}

Status Connection::change_schema(const std::function<Status()>& change) {
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, nullptr);
  Status done = change();
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0, nullptr);
  return done;
}

Status Connection::add_clock(Clock& clock) {
  const auto now = [](sqlite3_context* context, int, sqlite3_value**) {
    sqlite3_result_int64(context, static_cast<Clock*>(sqlite3_user_data(context))->now_ms());
  };
  const int code = sqlite3_create_function(
      handle_, "once_now_ms", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, &clock, now, nullptr, nullptr);
  if (code != SQLITE_OK) return fail(error(code, "add a function", SqliteStage::open));
  return {};
}

// What is written into a file that is no longer at its place is lost with the last who has it open.
Status Connection::check_in_place() {
  int has_moved = 0;
  const int code = sqlite3_file_control(handle_, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
  if (code != SQLITE_OK || has_moved == 0) return {};
  return fail(Remedy::stop, "gone",
              fmt::format("{} was deleted, moved or replaced while it was open: nothing more is "
                          "written. Put it back and start again; with another file in its place, "
                          "its own positions say where to go on",
                          sqlite3_db_filename(handle_, "main")));
}

Status Connection::begin() {
  ONCE_TRY(check_in_place());
  Statement statement = ONCE_TRY(prepare("BEGIN IMMEDIATE"));
  const int code = statement.step();
  if (code != SQLITE_DONE) return fail(error(code, "begin a transaction"));
  return {};
}

Status Connection::commit() {
  Statement statement = ONCE_TRY(prepare("COMMIT"));
  const int code = statement.step();
  if (code != SQLITE_DONE) return fail(error(code, "commit", SqliteStage::commit));
  return {};
}

void Connection::rollback() {
  if (sqlite3_get_autocommit(handle_) != 0) return;  // SQLite rolled back by itself
  side_ = Side::ours;
  // A failure leaves the transaction to the close of the connection, which cannot commit it.
  static_cast<void>(sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr));
}

Error Connection::error(int code, std::string_view what, SqliteStage stage) const {
  return error_from_sqlite(failure_of(code, handle_), stage, where_, what);
}

// A plain error can mean that it does not compile any more, since a table has changed; if it still
// does, its values are to blame.
Error Connection::error_of(const Statement& statement, int code, std::string_view what) {
  if (code != SQLITE_ERROR) return error(code, what);
  const std::string native = sqlite3_errmsg(handle_);
  sqlite3_stmt* again = nullptr;
  const bool compiles =
      sqlite3_prepare_v2(handle_, statement.text(), -1, &again, nullptr) == SQLITE_OK;
  sqlite3_finalize(again);
  return error_from_sqlite({.code = code, .text = native},
                           compiles ? SqliteStage::values : SqliteStage::statement, where_, what);
}

Result<int> Connection::checkpoint(int mode) {
  int pages = 0;
  int moved = 0;
  const int code = sqlite3_wal_checkpoint_v2(handle_, nullptr, mode, &pages, &moved);
  if (code == SQLITE_BUSY) return pages - moved;  // a reader needs the rest: another time
  if (code != SQLITE_OK) return fail(error(code, "checkpoint"));
  if (pages == moved) wal_pages_ = 0;
  return pages - moved;
}

int Connection::authorize(void* self, int action, const char* first, const char* second,
                          const char*, const char*) {
  if (static_cast<Connection*>(self)->side_ == Side::ours) return SQLITE_OK;
  switch (action) {
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
    case SQLITE_ATTACH:
    case SQLITE_DETACH: return SQLITE_DENY;
    // Full-text search asks whether others have written; that changes nothing.
    case SQLITE_PRAGMA:
      return second == nullptr && std::string_view(first) == "data_version" ? SQLITE_OK
                                                                            : SQLITE_DENY;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_VIEW: return is_one_of_ours(first) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_ALTER_TABLE:
    case SQLITE_CREATE_INDEX:
    case SQLITE_DROP_INDEX:
    case SQLITE_CREATE_TRIGGER: return is_one_of_ours(second) ? SQLITE_DENY : SQLITE_OK;
    default: return SQLITE_OK;
  }
}

int Connection::remember_wal_pages(void* self, sqlite3*, const char*, int pages) {
  static_cast<Connection*>(self)->wal_pages_ = pages;
  return SQLITE_OK;
}

}  // namespace once
