// SPDX-License-Identifier: Apache-2.0
// What a session is set to, and how its transactions begin and end.
#include <fmt/format.h>

#include <array>
#include <string>

#include "store/postgres/connection.h"

namespace once {
namespace {

struct Setting {
  std::string_view name;
  std::string_view value;
};

// A duplicate that meets an open transaction waits, but not for ever; neither does a lock that a
// stopped process holds. Of the rest, values would be read or written in another way: texts with
// backslashes, bytes, dates, numbers, nulls in arrays.
constexpr std::array<Setting, 15> settings{{
    {"client_encoding", "UTF8"},
    {"lock_timeout", "10s"},
    {"idle_in_transaction_session_timeout", "60s"},
    {"default_transaction_isolation", "read committed"},
    {"default_transaction_read_only", "off"},
    {"default_transaction_deferrable", "off"},
    {"timezone", "UTC"},
    {"datestyle", "ISO, MDY"},
    {"intervalstyle", "postgres"},
    {"bytea_output", "hex"},
    {"extra_float_digits", "1"},
    {"standard_conforming_strings", "on"},
    {"backslash_quote", "safe_encoding"},
    {"array_nulls", "on"},
    {"transform_null_equals", "off"},
}};

std::string settings_sql() {
  std::string text = "SELECT ";
  for (const Setting& setting : settings)
    text += fmt::format("{}set_config('{}', '{}', false)", text.size() == 7 ? "" : ", ",
                        setting.name, setting.value);
  return text;
}

}  // namespace

Status PgConnection::configure() {
  static const std::string text = settings_sql();
  return send(text);
}

// What DISCARD ALL does, but for the prepared statements, which are ours.
Status PgConnection::restore_session() {
  for (const char* statement :
       {"CLOSE ALL", "SET SESSION AUTHORIZATION DEFAULT", "RESET ALL", "UNLISTEN *",
        "SELECT pg_advisory_unlock_all()", "DISCARD TEMP", "DISCARD SEQUENCES"})
    ONCE_TRY(send(statement));
  ONCE_TRY(configure());
  return sync();
}

// The server only warns if there is no transaction that it could commit.
void PgConnection::note(void* self, const PGresult* notice) {
  const char* const state = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
  if (state != nullptr && std::string_view(state) == "25P01")
    static_cast<PgConnection*>(self)->committed_nothing_ = true;
}

// Whatever the default is: in another isolation an id that was forgotten meanwhile would be new.
Status PgConnection::begin() {
  return send("BEGIN ISOLATION LEVEL read committed READ WRITE", {}, {}, SqlStage::begin);
}

Status PgConnection::commit() { return send("COMMIT", {}, {}, SqlStage::commit); }

bool PgConnection::reset() {
  writes_ = {};
  first_ = {};
  if (broken_) return false;
  if (!pending_.empty() && !sync() && broken_) return false;
  in_transaction_ = false;
  if (PQtransactionStatus(handle_) != PQTRANS_IDLE) {
    sets_.clear();  // a table that was made in the transaction is gone with it
    if (!send("ROLLBACK") || !sync()) return false;
  }
  committed_nothing_ = false;
  if (!session_changed_) return true;
  session_changed_ = false;
  sets_.clear();
  return restore_session().has_value();
}

}  // namespace once
