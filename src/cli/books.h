// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>
#include <once/records.h>
#include <once/store.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/output.h"

namespace CLI {
class App;
}  // namespace CLI

namespace once::cli {

// Into which store a person looks, and into whose part of it.
struct BooksFlags {
  std::string store;
  std::string scope;  // empty: all of them, or the only one
};

void add_store(CLI::App& command, BooksFlags& flags);  // only the store
void add_books(CLI::App& command, BooksFlags& flags);

// A store that is there already, open for a person. A mistyped URL makes no new one.
class Books {
 public:
  [[nodiscard]] static Result<Books> open(const BooksFlags& flags);

  Store& store() { return *store_; }
  Records& records() { return *store_->records(); }
  // A store that has none is an error.
  [[nodiscard]] Result<Repairs*> repairs();
  [[nodiscard]] Result<ClaimStore*> claims();
  [[nodiscard]] Result<Outbox*> outbox();

  // The scopes to read: the one that was asked for, or all.
  const std::vector<std::string>& scopes() const { return scopes_; }
  // The same without our own: those of relays and of the store itself.
  std::vector<std::string> user_scopes() const;
  // The scope to change: the one that was asked for, or the only one of a user.
  [[nodiscard]] Result<std::string> scope_to_change() const;

 private:
  Books(std::unique_ptr<Store> store, bool chosen) : store_(std::move(store)), chosen_(chosen) {}
  Status choose(const std::string& scope);

  std::unique_ptr<Store> store_;
  bool chosen_;  // by --scope
  std::vector<std::string> scopes_;
};

// "2026-11-15T22:40:52.123Z"
std::string time_text(std::int64_t ms);

// A fingerprint as `version:digest`; empty when it is not compared.
std::string text_of(const Fingerprint& fingerprint);

Json json_of(const std::string& scope, const LedgerRecord& record);
Json json_of(const std::string& scope, const ParkedRecord& record);
Json json_of(const std::string& scope, const OperationRecord& record);
Json json_of(const std::string& scope, const ClaimRecord& record);

// A whole parked message.
void write_parked(Output& output, const std::string& scope, const ParkedRecord& record);

// Many values: an array, a line for each, or a table; a sentence where there are none.
void write_list(Output& output, const Json& values, const Table& table, std::string_view none);

}  // namespace once::cli
