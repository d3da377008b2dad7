// SPDX-License-Identifier: Apache-2.0
#include "operate/record_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <utility>

#include "operate/message_json.h"
#include "runtime/forgetter.h"

namespace once::operate {
namespace {

Json json_time(std::int64_t ms) { return ms < 0 ? Json() : Json(ms); }

// A fingerprint as `version:digest`; empty when it is not compared.
std::string text_of(const Fingerprint& fingerprint) {
  if (fingerprint.version == 0) return {};
  std::string text = fmt::format("{}:", fingerprint.version);
  for (const std::uint8_t byte : fingerprint.digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

std::string time_text(std::int64_t ms) {
  const std::int64_t seconds = ms >= 0 ? ms / 1000 : (ms - 999) / 1000;
  return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(seconds)),
                     ms - seconds * 1000);
}

Json json_of(const std::string& scope, const LedgerRecord& record) {
  Json json = {{"scope", scope}};
  put_bytes(json, "id", record.id);
  json["outcome"] = name_of(record.outcome.kind);
  put_bytes(json, "detail", record.outcome.detail);
  json["recorded_ms"] = record.recorded_ms;
  json["born_ms"] = record.born_ms;
  json["partition"] = record.partition;
  json["offset"] = record.offset;
  json["fingerprint"] = text_of(record.fingerprint);
  return json;
}

Json json_of(const std::string& scope, const ParkedRecord& record) {
  return {{"scope", scope},
          {"number", record.number},
          {"parked_ms", record.parked_ms},
          {"reason", record.reason},
          {"attempts", record.attempts},
          {"partition", record.partition},
          {"offset", record.offset},
          {"message", json_of(record.message)}};
}

Json json_of(const std::string& scope, const DeferredRecord& record) {
  return {{"scope", scope},
          {"number", record.number},
          {"due_ms", record.due_ms},
          {"deferred_ms", record.deferred_ms},
          {"attempts", record.attempts},
          {"in_order", record.in_order},
          {"reason", record.reason},
          {"partition", record.partition},
          {"offset", record.offset},
          {"message", json_of(record.message)}};
}

Json json_of(const std::string& scope, const OperationRecord& record) {
  Json json = {{"scope", scope},
               {"number", record.number},
               {"at_ms", record.at_ms},
               {"action", record.action}};
  put_bytes(json, "subject", record.subject);
  json["reason"] = record.reason;
  return json;
}

Json json_of(const std::string& scope, const ClaimRecord& record) {
  Json json = {{"scope", scope}};
  put_bytes(json, "id", record.id);
  json["state"] = name_of(record.state);
  json["generation"] = record.generation;
  json["fence"] = record.fence;
  json["attempts"] = record.attempts;
  json["born_ms"] = record.born_ms;
  json["changed_ms"] = record.changed_ms;
  json["lease_until_ms"] = record.lease_until_ms;
  json["owner"] = record.owner;
  if (record.result) put_bytes(json, "result", *record.result);
  json["reason"] = record.reason;
  json["fingerprint"] = text_of(record.fingerprint);
  json["steps"] = Json::array();
  for (const StepRecord& step : record.steps) {
    Json entry = {{"name", step.name}};
    put_bytes(entry, "result", step.result);
    json["steps"].push_back(std::move(entry));
  }
  return json;
}

Json json_of(const PartitionRecord& record) {
  return {{"partition", record.partition},
          {"offset", record.position.offset},
          {"fence", record.position.fence},
          {"source", record.source_identity},
          {"settled_ms", json_time(record.settled_ms)},
          {"waiting_ms", json_time(record.waiting_ms)},
          {"drained_ms", json_time(record.drained_ms)},
          {"reach_ms", json_time(reach_ms(record))}};
}

}  // namespace once::operate
