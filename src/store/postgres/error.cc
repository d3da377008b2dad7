// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace once {
namespace {

struct Meaning {
  Remedy remedy;
  std::string_view tag;
  std::string_view advice;
};

constexpr Meaning away{Remedy::retry, "away", "is the server up and reachable?"};

// What the connection says when it is gone, and when the server goes.
bool is_connection(std::string_view state) {
  return state.empty() || state.starts_with("08") || state == "57P01" || state == "57P02" ||
         state == "57P03" || state == "57P05" || state == "25P03" || state == "25P04";
}

// The classes of PostgreSQL that say nothing about the values of a statement. All others do: a
// value or a row that does not fit (22, 23, 44, 54), as many rows as a subquery, a CASE or a STRICT
// cannot do with (20, 21, P0), what a trigger or a function says (09, 27, 38, 39, P0), and the
// classes that PostgreSQL does not have: RAISE takes any state.
constexpr std::array<std::string_view, 33> classes_of_others{
    "00", "01", "02", "03", "08", "0A", "0B", "0F", "0L", "0P", "0Z",
    "10", "24", "25", "26", "28", "2B", "2D", "2F", "34", "3B", "3D",
    "3F", "40", "42", "53", "55", "57", "58", "72", "F0", "HV", "XX"};

bool is_about_data(std::string_view state) {
  const std::string_view kind = state.substr(0, 2);
  if (state == "2F005") return true;  // a function came to its end without RETURN
  return std::find(classes_of_others.begin(), classes_of_others.end(), kind) ==
         classes_of_others.end();
}

// By RAISE: a statement can say of itself whatever a server says when it goes.
constexpr Meaning raised{Remedy::retry, "raised",
                         "a function or a trigger says so, and the connection is there"};

Meaning meaning_of(std::string_view state, SqlStage stage, bool goes_on) {
  if (goes_on && !state.empty() && (is_connection(state) || state == "40003")) return raised;
  if (is_connection(state)) {
    // Without an answer to a commit, only the database knows.
    if (stage == SqlStage::commit)
      return {Remedy::recheck, "lost", "the answer to the commit was lost; look up what is there"};
    return away;
  }
  if (state == "40003")  // the server itself does not know
    return {Remedy::recheck, "lost", "the outcome is unknown; look up what is there"};
  const std::string_view kind = state.substr(0, 2);
  if (is_about_data(state)) return {Remedy::park, "constraint", "the database refuses this write"};
  if (state == "57014")
    return {Remedy::retry, "timeout", "it took longer than statement_timeout, or was cancelled"};
  if (kind == "40" || state == "55P03")
    return {Remedy::retry, "conflict",
            "another transaction was in the way, or a function says so; try again"};
  if (state == "53100") return {Remedy::retry, "full", "free some space, then try again"};
  if (kind == "53") return {Remedy::retry, "exhausted", "the server has no more resources"};
  if (kind == "25") return {Remedy::stop, "denied", "is this a standby? Connect to the primary"};
  if (kind == "28") return {Remedy::stop, "denied", "check user and password"};
  if (state == "42501") return {Remedy::stop, "denied", "grant the rights that are missing"};
  if (state == "3D000") return {Remedy::stop, "missing", "create the database first"};
  if (kind == "42" || kind == "26" || kind == "0A" || kind == "2B")
    return {Remedy::stop, "sql", "check the statement"};
  if (state == "XX001" || state == "XX002")
    return {Remedy::stop, "corrupt", "restore it from a backup, then replay the source"};
  if (kind == "58" || kind == "XX") return {Remedy::stop, "io", "look into the server's log"};
  return {Remedy::stop, "sql", "check the statement"};
}

struct Phrase {
  std::string_view part;  // of the text
  Meaning meaning;
};

constexpr Meaning untrusted{Remedy::stop, "denied",
                            "check sslmode, sslrootcert and the server's certificate"};
constexpr Meaning denied{Remedy::stop, "denied", "check user and password"};
constexpr Meaning missing{Remedy::stop, "missing", "create the database first"};
constexpr Meaning exhausted{Remedy::retry, "exhausted", "the server has no more resources"};
constexpr Meaning address{Remedy::stop, "config", "correct the parameter hostaddr of the URL"};
constexpr Meaning parameters{Remedy::stop, "config", "correct the parameters of the URL"};

// The first that is found counts. What is not here may be over soon.
constexpr Phrase connect_phrases[] = {
    {"certificate", untrusted},
    {"does not support SSL", untrusted},
    {"authentication failed", denied},
    {"no password supplied", denied},
    {"no pg_hba.conf entry", denied},
    {"role \"", denied},
    {"\" does not exist", missing},
    {"too many clients", exhausted},
    {"too many connections", exhausted},
    {"remaining connection slots", exhausted},
    // By libpq.
    {"invalid URI query parameter", parameters},
    {"invalid connection option", parameters},
    {" value: \"", parameters},
    {"invalid integer value", parameters},
    {"invalid port number", parameters},
    {"could not parse network address", address},
    {"could not match ", parameters},
    {"definition of service", parameters},
    {"service file", parameters},
    {"Unix-domain socket path", parameters},
    // By the server, about what options and the like ask for.
    {"unrecognized configuration parameter", parameters},
    {"invalid value for parameter", parameters},
    {"command-line argument", parameters},
    {"permission denied to set parameter", parameters},
};

std::string_view without_newline(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

Error error_from_postgres(std::string_view state, SqlStage stage, std::string_view where,
                          std::string_view what, std::string_view native, bool goes_on) {
  const Meaning meaning = meaning_of(state, stage, goes_on);
  Error error{meaning.remedy, std::string(meaning.tag),
              fmt::format("{}: cannot {}: {} ({}); {}", where, what, without_newline(native),
                          state.empty() ? "no connection" : fmt::format("SQL state {}", state),
                          meaning.advice),
              std::nullopt};
  if (!goes_on || meaning.tag == "corrupt") return error;
  if (stage == SqlStage::statement) error.cause = Cause::statement;
  // Nothing of ours is checked that late: a trigger of the user's tables is.
  if (stage == SqlStage::commit) error.cause = Cause::handler;
  return error;
}

Error error_from_connect(std::string_view where, std::string_view native) {
  const auto* const found = std::find_if(
      std::begin(connect_phrases), std::end(connect_phrases),
      [&](const Phrase& one) { return native.find(one.part) != std::string_view::npos; });
  const Meaning& meaning = found == std::end(connect_phrases) ? away : found->meaning;
  return {meaning.remedy, std::string(meaning.tag),
          fmt::format("{}: cannot connect: {}; {}", where, without_newline(native), meaning.advice),
          std::nullopt};
}

}  // namespace once
