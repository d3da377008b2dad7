// SPDX-License-Identifier: Apache-2.0
#include "operate/scopes.h"

#include <fmt/format.h>
#include <once/clock.h>

#include <algorithm>
#include <optional>

#include "operate/claims.h"
#include "operate/failure.h"
#include "operate/park.h"
#include "operate/pipeline_role.h"
#include "runtime/role.h"

namespace once::operate {
namespace {

// Counting reads whole records: beyond this it is "more".
constexpr std::size_t counted_max = 10'000;

tl::unexpected<Error> busy(const std::string& scope, const std::string& why) {
  return fail(
      Remedy::stop, "busy",
      fmt::format("scope \"{}\" is in use: {}; stop it first, nothing was changed", scope, why));
}

Status check_not_running(Books& books, const std::string& scope) {
  const std::string holder =
      ONCE_TRY(role_holder(*ONCE_TRY(books.claims()), pipeline_scope, scope)).process;
  if (!holder.empty()) return busy(scope, "the process " + holder + " runs it");
  ClaimStore* claims = ONCE_TRY(books.claims());
  const auto running = ONCE_TRY(claims->claims(scope, ClaimState::running, "", 1));
  if (running.empty()) return {};
  return busy(scope,
              fmt::format("{} holds the claim \"{}\"", holder_of(running[0]), running[0].id));
}

Result<ScopeSummary> summary_of(Books& books, const std::string& scope) {
  ScopeSummary summary{.scope = scope};
  summary.partitions = ONCE_TRY(books.records().describe(scope)).partitions.size();
  const auto count = [](std::size_t read, std::size_t& counted, bool& more) {
    counted = std::min(read, counted_max);
    more = read > counted_max;
  };
  count(ONCE_TRY(books.records().ledger(scope, "", counted_max + 1)).size(), summary.ids,
        summary.more_ids);
  summary.parked = ONCE_TRY(parked_in(books, scope)).size();
  summary.waiting = ONCE_TRY(count_waiting(books, scope));
  if (books.store().claims() == nullptr) return summary;
  count(ONCE_TRY(books.store().claims()->claims(scope, std::nullopt, "", counted_max + 1)).size(),
        summary.claims, summary.more_claims);
  summary.holder = ONCE_TRY(role_holder(*ONCE_TRY(books.claims()), pipeline_scope, scope)).process;
  return summary;
}

}  // namespace

Result<std::vector<ScopeSummary>> scopes_in(Books& books) {
  std::vector<ScopeSummary> found;
  for (const std::string& scope : books.user_scopes())
    found.push_back(ONCE_TRY(summary_of(books, scope)));
  return found;
}

Result<ScopeSummary> plan_scope_drop(Books& books, const std::string& scope) {
  if (is_internal_scope(scope))
    return fail_usage(fmt::format("\"{}\" is a scope of Once itself and is not dropped", scope));
  const auto& known = books.scopes();
  if (std::find(known.begin(), known.end(), scope) == known.end())
    return fail_not_known(
        fmt::format("the store {} has no scope \"{}\"; `once scope ls` lists them",
                    books.store().traits().name, scope));
  ONCE_TRY(check_not_running(books, scope));
  return summary_of(books, scope);
}

Result<ScopeSummary> drop_scope(Books& books, const std::string& scope, const std::string& reason) {
  const ScopeSummary planned = ONCE_TRY(plan_scope_drop(books, scope));
  Repairs* repairs = ONCE_TRY(books.repairs());
  // The role of the pipeline: one that is started now waits, and one that came first is told.
  Role role(*ONCE_TRY(books.claims()), {.scope = std::string(pipeline_scope), .id = scope},
            system_clock());
  const bool held = ONCE_TRY(role.hold());
  if (!held) return busy(scope, "the process " + role.holder() + " runs it");
  ONCE_TRY(repairs->correct(scope, DropScope{}, reason));
  return planned;
}

Json json_of(const ScopeSummary& scope) {
  return {{"scope", scope.scope},
          {"partitions", scope.partitions},
          {"ids", scope.ids},
          {"more_ids", scope.more_ids},
          {"parked", scope.parked},
          {"waiting", scope.waiting.count},
          {"more_waiting", scope.waiting.more},
          {"claims", scope.claims},
          {"more_claims", scope.more_claims},
          {"holder", scope.holder}};
}

}  // namespace once::operate
