// SPDX-License-Identifier: Apache-2.0
#include "operate/books.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <once/open.h>

#include <algorithm>

#include "base/url.h"
#include "open/look.h"
#include "operate/failure.h"

namespace once::operate {
namespace {

tl::unexpected<Error> has_none(const Store& store, std::string_view what) {
  return fail(Remedy::stop, "config",
              fmt::format("the store {} has no {}", store.traits().name, what));
}

// Opening makes what is missing, and changes what is of an older version: a person who looks, or
// mistypes a path, must do neither.
Status check_made(const std::string& store_url) {
  switch (ONCE_TRY(store_state_at(store_url))) {
    case StoreState::current: return {};
    case StoreState::none:
      if (const std::string file = missing_file_of(store_url); !file.empty())
        return fail(Remedy::stop, "missing",
                    fmt::format("there is no file {}: no pipeline has used it yet", file));
      return fail(Remedy::stop, "missing",
                  fmt::format("{} has no tables of Once: no pipeline has used it yet",
                              shown_url(store_url)));
    case StoreState::older:
      return fail(Remedy::stop, "older",
                  fmt::format("{} was made by an older version of Once; a pipeline that is started "
                              "with this one upgrades it, or use the older program",
                              shown_url(store_url)));
  }
  return {};
}

}  // namespace

bool is_internal_scope(std::string_view scope) { return scope.starts_with("once."); }

Result<Books> Books::open(const std::string& store_url, const std::string& scope) {
  ONCE_TRY(check_made(store_url));
  Books books(ONCE_TRY(open_store(store_url)), !scope.empty());
  if (books.store_->records() == nullptr) return has_none(books.store(), "records to read");
  ONCE_TRY(books.choose(scope));
  return books;
}

Status Books::choose(const std::string& scope) {
  scopes_ = ONCE_TRY(records().scopes());
  if (!chosen_) return {};
  if (std::find(scopes_.begin(), scopes_.end(), scope) == scopes_.end())
    return fail_not_known(fmt::format("the store {} has no scope \"{}\"; it has: {}",
                                      store_->traits().name, scope, fmt::join(scopes_, ", ")));
  scopes_ = {scope};
  return {};
}

Result<Repairs*> Books::repairs() {
  if (store_->repairs() == nullptr) return has_none(*store_, "way to change its books by hand");
  return store_->repairs();
}

Result<ClaimStore*> Books::claims() {
  if (store_->claims() == nullptr) return has_none(*store_, "claims");
  return store_->claims();
}

Result<Outbox*> Books::outbox() {
  if (store_->outbox() == nullptr) return has_none(*store_, "outbox");
  return store_->outbox();
}

Result<Deferrals*> Books::deferrals() {
  if (store_->deferrals() == nullptr) return has_none(*store_, "messages that wait");
  return store_->deferrals();
}

std::vector<std::string> Books::user_scopes() const {
  std::vector<std::string> scopes = scopes_;
  if (!chosen_) std::erase_if(scopes, is_internal_scope);
  return scopes;
}

Result<std::string> Books::scope_to_change() const {
  if (chosen_) return scopes_.front();
  const std::vector<std::string> candidates = user_scopes();
  if (candidates.size() == 1) return candidates.front();
  if (candidates.empty())
    return fail_not_known(
        fmt::format("the store {} has no scope: no pipeline has used it", store_->traits().name));
  return fail_usage(fmt::format("the store {} has several scopes; choose one with --scope: {}",
                                store_->traits().name, fmt::join(candidates, ", ")));
}

}  // namespace once::operate
