// SPDX-License-Identifier: Apache-2.0
#include "cli/books.h"
#include "cli/flags.h"

#include <fmt/format.h>

#include <cstdlib>

#include "audit/looking_url.h"
#include "base/url.h"
#include "cli/exit_code.h"
#include "cli/id_text.h"
#include "model/message_view.h"
#include "open/look.h"
#include "operate/message_json.h"

namespace once::cli {
namespace {

constexpr const char* store_variable = "ONCE_STORE";

}  // namespace

// The parser must not read the variable: the commands of a group share their flags, and it would
// write those of a command that was not called over the flag of the one that was.
Result<Books> BooksFlags::open() const {
  if (store) return Books::open(*store, scope);
  const char* const from_environment = std::getenv(store_variable);
  if (from_environment != nullptr && *from_environment != '\0')
    return Books::open(from_environment, scope);
  return fail_usage(
      fmt::format("--store is required; name the store with it, or set {}", store_variable));
}

void add_store(const Command& command, BooksFlags& flags) {
  command.add_option("--store", flags.store, "The store: sqlite:PATH; or set ONCE_STORE")
      .value_text("URL");
}

void add_books(const Command& command, BooksFlags& flags) {
  add_store(command, flags);
  command
      .add_option("--scope", flags.scope,
                  "Only this scope; needed for changes when there are several")
      .value_text("NAME");
}

void tell_looking(const std::string& source_url, Output& output) {
  const auto url = audit::looking_url(source_url);
  if (url && !url->group.empty())
    output.talk(fmt::format("reading all partitions without joining the group \"{}\"", url->group));
  if (is_queue(source_url))
    output.talk(
        fmt::format("{} is a queue: what was acknowledged is gone, and what others hold is "
                    "not seen, so that gaps and losses cannot be found here",
                    shown_url(source_url)));
}

void write_parked(Output& output, const std::string& scope, const ParkedRecord& record) {
  if (output.json()) return output.write_json(json_of(scope, record));
  Table table({"", ""});
  table.row({"number", fmt::format("{}", record.number)});
  table.row({"scope", scope});
  table.row({"parked", time_text(record.parked_ms)});
  table.row({"reason", record.reason});
  table.row({"attempts", fmt::format("{}", record.attempts)});
  table.row({"came from", fmt::format("{} offset {}", record.partition, record.offset)});
  table.row({"id", text_of_id(record.message.id)});
  table.row({"key", operate::text_or_base64(view_of(record.message.key))});
  table.row({"timestamp", time_text(record.message.timestamp_ms)});
  for (const Header& header : record.message.headers)
    table.row({"header " + header.name, operate::text_or_base64(view_of(header.value))});
  table.row({"body", operate::text_or_base64(view_of(record.message.body))});
  output.write_table(table);
}

void write_list(Output& output, const Json& values, const Table& table, std::string_view none) {
  if (output.format == Format::jsonl)
    for (const Json& value : values) output.write_json(value);
  else if (output.json())
    output.write_json(values);
  else if (values.empty())
    output.talk(none);
  else
    output.write_table(table);
}

}  // namespace once::cli
