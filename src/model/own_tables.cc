// SPDX-License-Identifier: Apache-2.0
#include "model/own_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace once {

std::vector<std::string> tables_made_by(std::span<const std::string_view> scripts) {
  constexpr std::string_view made = "CREATE TABLE ";
  constexpr std::string_view if_missing = "IF NOT EXISTS ";
  std::vector<std::string> names;
  for (std::string_view script : scripts)
    for (std::size_t at = script.find(made); at != std::string_view::npos; at = script.find(made)) {
      script.remove_prefix(at + made.size());
      if (script.starts_with(if_missing)) script.remove_prefix(if_missing.size());
      std::string name(script.substr(0, script.find_first_of(" (")));
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(std::move(name));
    }
  return names;
}

std::string quoted_names(std::span<const std::string> names) {
  return fmt::format("'{}'", fmt::join(names, "', '"));
}

Error foreign_table_error(std::string_view where, std::string_view name) {
  return {Remedy::stop, "foreign",
          fmt::format("{}: \"{}\" is there, but not the table once_schema, so that it was not made "
                      "by Once; rename it, or choose another database or schema",
                      where, name),
          std::nullopt};
}

}  // namespace once
