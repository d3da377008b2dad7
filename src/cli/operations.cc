// SPDX-License-Identifier: Apache-2.0
#include "operate/operations.h"

#include <memory>
#include <string>

#include "cli/books.h"
#include "cli/checks.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/id_text.h"

namespace once::cli {
namespace {

struct OperationsFlags {
  BooksFlags books;
  operate::OperationSelection chosen;
};

Result<int> list(const OperationsFlags& flags, Output& output) {
  Books books = ONCE_TRY(flags.books.open());
  Json json = Json::array();
  Table table({"time", "scope", "action", "subject", "reason"});
  for (const auto& [scope, record] : ONCE_TRY(operate::operations_in(books, flags.chosen))) {
    json.push_back(operate::json_of(scope, record));
    table.row(
        {time_text(record.at_ms), scope, record.action, text_of_id(record.subject), record.reason});
  }
  write_list(output, json, table, "nothing was changed by hand");
  return exit_ok;
}

}  // namespace

void add_operations(const Command& app, Context& context) {
  const auto flags = std::make_shared<OperationsFlags>();
  const Command command =
      app.add_command("operations", "What was changed by hand, and the reasons that were given");
  add_books(command, flags->books);
  command.add_flag("--all", flags->chosen.all,
                   "What Once has done by itself, too: partitions taken, messages parked, ids "
                   "forgotten, tables upgraded");
  command.add_option("--limit", flags->chosen.limit, "How many, the newest; 100")
      .check(whole_number(1, 1'000'000))
      .value_text("N");
  add_output(command, context);
  command.footer(
      "The log of a scope keeps its newest 10,000 lines. once trace ID shows those about an id.\n"
      "Example:\n  once operations --scope payments --store sqlite:shop.db");
  command.callback([&context, flags] {
    context.action = [&context, flags] { return list(*flags, context.output); };
  });
}

}  // namespace once::cli
