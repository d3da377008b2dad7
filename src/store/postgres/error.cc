// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/error.h"

#include <fmt/format.h>

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

Meaning meaning_of(std::string_view state, SqlStage stage) {
  if (state == "08001" && stage == SqlStage::open)
    return {Remedy::stop, "denied", "check sslmode, sslrootcert and the server's certificate"};
  if (is_connection(state)) {
    // Without an answer to a commit, only the database knows.
    if (stage == SqlStage::commit)
      return {Remedy::recheck, "lost", "the answer to the commit was lost; look up what is there"};
    return away;
  }
  if (state == "40003")  // the server itself does not know
    return {Remedy::recheck, "lost", "the outcome is unknown; look up what is there"};
  const std::string_view kind = state.substr(0, 2);
  if (kind == "40" || state == "55P03" || state == "57014")
    return {Remedy::retry, "conflict", "another transaction was in the way; try again"};
  if (state == "53100") return {Remedy::retry, "full", "free some space, then try again"};
  if (kind == "53") return {Remedy::retry, "exhausted", "the server has no more resources"};
  if (kind == "25") return {Remedy::stop, "denied", "is this a standby? Connect to the primary"};
  if (kind == "22" || kind == "23" || kind == "44" || kind == "54")
    return {Remedy::park, "constraint", "the database refuses this write"};
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

std::string_view without_newline(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

Error error_from_postgres(std::string_view state, SqlStage stage, std::string_view where,
                          std::string_view what, std::string_view native) {
  const Meaning meaning = meaning_of(state, stage);
  return {meaning.remedy, std::string(meaning.tag),
          fmt::format("{}: cannot {}: {} ({}); {}", where, what, without_newline(native),
                      state.empty() ? "no connection" : fmt::format("SQL state {}", state),
                      meaning.advice),
          std::nullopt};
}

}  // namespace once
