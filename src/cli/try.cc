// SPDX-License-Identifier: Apache-2.0
#include "cli/try.h"

#include <fmt/format.h>

#include <string>

#include "cli/id_text.h"
#include "model/message_view.h"
#include "operate/message_json.h"
#include "operate/rehearsal_json.h"

namespace once::cli {
namespace {

std::string rows_of(const Rehearsed& message) {
  std::string rows;
  for (const Rehearsed::Write& write : message.writes)
    rows += fmt::format("{}{}", rows.empty() ? "" : "+",
                        write.rows ? std::to_string(*write.rows) : "?");
  return rows;
}

Table table_of(const std::vector<Rehearsed>& messages) {
  Table table({"partition", "offset", "id", "verdict", "outcome", "rows", "emits", "detail"});
  for (const Rehearsed& message : messages)
    table.row({message.partition, std::to_string(message.offset), text_of_id(message.id),
               message.verdict ? name_of(*message.verdict) : "", name_of(message.outcome.kind),
               rows_of(message), message.emits.empty() ? "" : std::to_string(message.emits.size()),
               operate::text_or_base64(message.outcome.detail)});
  return table;
}

Table emits_of(const std::vector<Rehearsed>& messages) {
  Table table({"partition", "offset", "emits to", "id", "key", "body"});
  for (const Rehearsed& message : messages)
    for (const Rehearsed::Emit& emit : message.emits)
      table.row({message.partition, std::to_string(message.offset), emit.destination,
                 text_of_id(emit.message.id), operate::text_or_base64(view_of(emit.message.key)),
                 operate::text_or_base64(view_of(emit.message.body))});
  return table;
}

}  // namespace

Json rehearsed_json(const std::vector<Rehearsed>& messages) {
  Json made = Json::array();
  for (const Rehearsed& message : messages) made.push_back(operate::json_of(message));
  return {{"messages", std::move(made)}};
}

void write_rehearsed(const std::vector<Rehearsed>& messages, Output& output) {
  output.write_table(table_of(messages));
  bool emits = false;
  for (const Rehearsed& message : messages) emits = emits || !message.emits.empty();
  if (emits) {
    output.write_line("");
    output.write_table(emits_of(messages));
  }
  output.talk(messages.empty() ? "there is no message to try: everything is handled"
                               : "nothing of this was kept: all was rolled back");
}

}  // namespace once::cli
