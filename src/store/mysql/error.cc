// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/error.h"

#include <fmt/format.h>

namespace once {
namespace {

struct Meaning {
  Remedy remedy;
  std::string_view tag;
  std::string_view advice;
};

// Inside of an XA transaction, in which procedures run.
constexpr std::string_view procedure_advice =
    "a procedure may neither commit nor do what commits by itself; take that out of it";

constexpr Meaning refused{Remedy::park, "constraint", "the database refuses this write"};

constexpr Meaning raised{Remedy::retry, "raised",
                         "a procedure or a trigger says so, and the connection is there"};

// Whether the server cannot be believed, as opposed to a connection that broke while it was made:
// the client library has one number for both.
bool is_untrusted(unsigned code, SqlStage stage, std::string_view native) {
  return code == 2026 && stage == SqlStage::open &&
         (native.find("certificate") != std::string_view::npos ||
          native.find("SSL is required") != std::string_view::npos);
}

// Errors that depend on the values of a statement and on the rows that these meet. States are not
// enough: class 23 has the ambiguous column and class 21 the wrong number of columns.
bool is_about_data(const MysqlFailure& failure) {
  if (failure.state.starts_with("22")) return true;  // data exceptions
  const unsigned code = failure.code;
  if (code >= 3033 && code <= 3043) return true;  // geometries (MySQL)
  if (code >= 3140 && code <= 3158) return true;  // JSON (MySQL)
  if (code >= 3685 && code <= 3700) return true;  // regular expressions (MySQL)
  if (code >= 4035 && code <= 4051) return true;  // JSON and GeoJSON (MariaDB)
  switch (code) {
    case 1022:  // duplicate key
    case 1048:  // column cannot be null
    case 1062:  // duplicate entry
    case 1138:  // NULL where there can be none
    case 1139:  // regular expression (MariaDB)
    case 1169:
    case 1172:  // SELECT INTO found several rows
    case 1216:
    case 1217:
    case 1242:  // a subquery found several rows
    case 1260:  // GROUP_CONCAT was cut
    case 1263:  // NULL for a column that is not null
    case 1264:  // out of range
    case 1265:  // truncated
    case 1292:  // incorrect value
    case 1300:  // invalid character string
    case 1301:  // the result of a function is too large
    case 1321:  // a function came to its end without RETURN
    case 1329:  // FETCH found no row
    case 1339:  // no case of CASE
    case 1364:  // no default value
    case 1365:  // division by 0
    case 1366:  // incorrect value for column
    case 1367:  // illegal value
    case 1369:  // WITH CHECK OPTION of a view
    case 1406:  // data too long
    case 1411:  // incorrect value for a function
    case 1416:  // geometry
    case 1441:  // overflow of a moment
    case 1451:
    case 1452:  // foreign key
    case 1467:
    case 1525:  // incorrect value
    case 1526:
    case 1557:
    case 1586:
    case 1643:  // SIGNAL of a class of the user's
    case 1644:
    case 1690:  // out of range in an expression
    case 1748:
    case 1761:
    case 1762:
    case 1916:  // overflow in a conversion
    case 3819:  // check constraint (MySQL)
    case 4025:  // check constraint (MariaDB)
    case 4076:  // GeoJSON
    case 4176:  // JSON_TABLE: ERROR ON ...
    case 4178:
    case 4179: return true;
    default: return false;
  }
}

Meaning meaning_of(const MysqlFailure& failure, SqlStage stage) {
  const unsigned code = failure.code;
  const std::string_view native = failure.text;
  if (is_untrusted(code, stage, native))
    return {Remedy::stop, "denied", "check ssl, ssl-ca and the server's certificate"};
  if (failure.state.starts_with("45"))
    return refused;  // before its number, which the user may choose
  if (is_about_connection(code) && failure.goes_on && stage == SqlStage::statement) return raised;
  if (is_about_connection(code)) {
    // Without an answer to a commit, only the database knows.
    if (stage == SqlStage::commit)
      return {Remedy::recheck, "lost", "the answer to the commit was lost; look up what is there"};
    return {Remedy::retry, "away", "is the server up and reachable?"};
  }
  // Several numbers say this, and which depends on whose file could not grow.
  if (native.find("No space left") != std::string_view::npos)
    return {stage == SqlStage::commit ? Remedy::recheck : Remedy::retry, "full",
            "free some space, then try again"};
  if (is_about_data(failure)) return refused;
  switch (code) {
    case 1205:  // lock wait timeout
    case 1213:  // deadlock
    case 1020:  // record has changed since last read
    case 3572:  // NOWAIT
      return {Remedy::retry, "conflict",
              "another transaction was in the way, or a trigger says so; try again"};
    case 1317:  // interrupted
    case 1969:  // statement timeout (MariaDB)
    case 3024:  // statement timeout (MySQL)
      return {Remedy::retry, "timeout",
              "it took longer than max_statement_time or max_execution_time, or was cancelled"};
    case 1021:
    case 1114:  // the table is full
    case 3675: return {Remedy::retry, "full", "free some space, then try again"};
    case 1040:  // too many connections
    case 1041:
    case 1203:
    case 1226: return {Remedy::retry, "exhausted", "the server has no more resources"};
    case 1044:
    case 1045:
    case 1142:
    case 1143:
    case 1227:
    case 1698: return {Remedy::stop, "denied", "check user, password and rights"};
    case 1290:  // --read-only
    case 1792:
    case 1836: return {Remedy::stop, "denied", "is this a replica? Connect to the primary"};
    case 1399: return {Remedy::stop, "sql", procedure_advice};
    case 1049: return {Remedy::stop, "missing", "create the database first"};
    case 1030:
    case 1034:
    case 1194:
    case 1195: return {Remedy::stop, "io", "look into the server's log"};
    default: return {Remedy::stop, "sql", "check the statement"};
  }
}

}  // namespace

bool is_about_connection(unsigned code) {
  switch (code) {
    case 1053:  // server shutdown in progress
    case 1077:  // normal shutdown
    case 1080:  // forced close
    case 1152:
    case 1153:  // packet bigger than max_allowed_packet: the server closes
    case 1158:
    case 1159:
    case 1160:
    case 1161:
    case 1184:
    case 1927:  // connection was killed
    case 4031:  // disconnected because of inactivity
      return true;
    default: return code >= 2000 && code < 2100;
  }
}

Error error_from_mysql(const MysqlFailure& failure, SqlStage stage, std::string_view where,
                       std::string_view what) {
  const Meaning meaning = meaning_of(failure, stage);
  return {meaning.remedy,
          std::string(meaning.tag),
          fmt::format("{}: cannot {}: {} (error {}); {}", where, what, failure.text, failure.code,
                      meaning.advice),
          std::nullopt,
          std::nullopt,
          failure.goes_on && stage == SqlStage::statement ? Cause::statement : Cause::other};
}

}  // namespace once
