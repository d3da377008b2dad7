// SPDX-License-Identifier: Apache-2.0
#include "operate/audit_json.h"

#include <utility>

#include "operate/message_json.h"

namespace once::operate {
namespace {

Json place_of(const audit::MessagePlace& place) {
  return {{"partition", partition_number(place.partition)}, {"offset", place.offset}};
}

}  // namespace

Json json_of(const audit::AuditReport& report) {
  Json doubled = Json::array();
  for (const audit::Doubled& one : report.doubled)
    doubled.push_back({{"first", place_of(one.first)}, {"second", place_of(one.second)}});
  Json gaps = Json::array();
  for (const audit::Gap& gap : report.gap_list)
    gaps.push_back({{"partition", partition_number(gap.partition)},
                    {"producer", gap.producer},
                    {"from", gap.missing.begin},
                    {"to", gap.missing.end - 1}});
  return {{"messages", report.messages},
          {"without_id", report.without_id},
          {"duplicated_ids", report.duplicated_ids},
          {"surplus", report.surplus},
          {"repeated_sequences", report.repeated},
          {"gaps", report.gaps},
          {"missing_sequences", report.missing},
          {"doubled", std::move(doubled)},
          {"gap_list", std::move(gaps)},
          {"ok", report.is_clean()}};
}

Json json_of_queue(const audit::AuditReport& report) {
  Json json = json_of(report);
  json["not_known"] = {"gaps", "losses", "what others hold"};
  return json;
}

Json json_of(const audit::BridgeReport& report, std::size_t parked) {
  return {{"copied", report.copied},         {"missing", report.missing},
          {"doubled", report.doubled},       {"others", report.others},
          {"duplicates", report.duplicates}, {"parked", parked},
          {"without_id", report.without_id}, {"ok", report.is_clean()}};
}

Json json_of_bridge_without_audit(std::size_t parked) {
  return {{"compared", false}, {"parked", parked}, {"ok", true}};
}

}  // namespace once::operate
