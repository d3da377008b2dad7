// SPDX-License-Identifier: Apache-2.0
#include "operate/rehearsal_json.h"

#include "model/message_view.h"
#include "operate/message_json.h"

namespace once::operate {
Json json_of(const Rehearsed& message) {
  Json made{{"partition", message.partition}, {"offset", message.offset}};
  put_bytes(made, "id", message.id);
  put_part(made, "key", view_of(message.key));
  made["verdict"] = message.verdict ? Json(name_of(*message.verdict)) : Json(nullptr);
  made["outcome"] = name_of(message.outcome.kind);
  put_bytes(made, "detail", message.outcome.detail);
  made["attempts"] = message.attempts;
  made["writes"] = Json::array();
  for (const Rehearsed::Write& write : message.writes)
    made["writes"].push_back(
        {{"statement", write.statement}, {"rows", write.rows ? Json(*write.rows) : Json(nullptr)}});
  made["emits"] = Json::array();
  for (const Rehearsed::Emit& emit : message.emits)
    made["emits"].push_back(
        {{"destination", emit.destination}, {"message", json_of(emit.message)}});
  return made;
}

}  // namespace once::operate
