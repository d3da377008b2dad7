// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>
#include <once/outbox.h>
#include <once/records.h>
#include <once/store.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace once::operate {

// A scope of Once itself: those of relays, of the outbox, of pipelines' roles and of the store.
bool is_internal_scope(std::string_view scope);

// A store that is there already, open for a person. A mistyped URL makes no new one.
class Books {
 public:
  // An empty scope stands for all of them, or for the only one.
  [[nodiscard]] static Result<Books> open(const std::string& store_url,
                                          const std::string& scope = {});

  Store& store() { return *store_; }
  Records& records() { return *store_->records(); }
  // A store that has none is an error.
  [[nodiscard]] Result<Repairs*> repairs();
  [[nodiscard]] Result<ClaimStore*> claims();
  [[nodiscard]] Result<Outbox*> outbox();
  [[nodiscard]] Result<Deferrals*> deferrals();

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
  bool chosen_;  // one scope was asked for
  std::vector<std::string> scopes_;
};

}  // namespace once::operate
