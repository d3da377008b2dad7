// SPDX-License-Identifier: Apache-2.0
#include "operate/status.h"

#include <algorithm>
#include <utility>

#include "operate/claims.h"
#include "operate/park.h"
#include "operate/pipeline_role.h"
#include "operate/record_json.h"

namespace once::operate {
namespace {

constexpr std::size_t in_doubt_max = 1'000;

Result<PipelineStatus> pipeline_status(Books& books, const std::string& scope) {
  PipelineStatus status{.scope = scope};
  status.record = ONCE_TRY(books.records().describe(scope));
  status.parked = ONCE_TRY(parked_in(books, scope)).size();
  status.waiting = ONCE_TRY(count_waiting(books, scope));
  for (const PartitionRecord& partition : status.record.partitions)
    status.progress_ms = std::max(status.progress_ms, partition.drained_ms);
  ClaimStore* claims = books.store().claims();
  if (claims == nullptr) return status;
  status.claims_in_doubt =
      ONCE_TRY(claims->claims(scope, ClaimState::in_doubt, "", in_doubt_max)).size();
  status.holder = ONCE_TRY(role_holder(*claims, pipeline_scope, scope)).process;
  return status;
}

Json json_of(const PipelineStatus& status) {
  Json json = {{"scope", status.scope},
               {"horizon_ms", status.record.horizon_ms},
               {"horizon_held", status.record.horizon_held},
               {"parked", status.parked},
               {"waiting", status.waiting.count},
               {"more_waiting", status.waiting.more},
               {"claims_in_doubt", status.claims_in_doubt},
               {"holder", status.holder},
               {"progress_ms", status.progress_ms < 0 ? Json() : Json(status.progress_ms)},
               {"partitions", Json::array()}};
  for (const PartitionRecord& partition : status.record.partitions)
    json["partitions"].push_back(operate::json_of(partition));
  return json;
}

}  // namespace

Result<StoreStatus> status_of(Books& books) {
  StoreStatus status{.store = books.store().traits().name};
  for (const std::string& scope : books.user_scopes())
    status.pipelines.push_back(ONCE_TRY(pipeline_status(books, scope)));
  if (books.store().outbox() != nullptr) status.destinations = ONCE_TRY(destinations_in(books));
  return status;
}

Json json_of(const StoreStatus& status) {
  Json json = {
      {"store", status.store}, {"pipelines", Json::array()}, {"destinations", Json::array()}};
  for (const PipelineStatus& pipeline : status.pipelines)
    json["pipelines"].push_back(json_of(pipeline));
  for (const DestinationRecord& destination : status.destinations)
    json["destinations"].push_back(json_of(destination));
  return json;
}

}  // namespace once::operate
