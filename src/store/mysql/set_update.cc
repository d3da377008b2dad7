// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/set_update.h"

#include <fmt/format.h>

#include "store/mysql/loop.h"

namespace once {

bool can_be_table(const KeyedUpdate& update, const RowTypes& types) {
  for (std::size_t i = 0; i < update.is_plain.size(); ++i) {
    const enum_field_types type = types.of(i);
    if (type != MYSQL_TYPE_LONGLONG && type != MYSQL_TYPE_DOUBLE && !update.is_plain[i])
      return false;
  }
  return true;
}

std::string set_update(const KeyedUpdate& update, const RowTypes& types,
                       std::span<const std::span<const Value>> rows) {
  const JsonRows values = json_rows("once_v", types, rows);
  const auto name_of = [&values](std::size_t i) { return values.uses[i]; };
  // The values first, in their order: then rows are locked in the order of keys.
  return fmt::format("UPDATE {} AS once_v STRAIGHT_JOIN {} SET {} WHERE {}", values.table,
                     update.table, update.set_with(name_of), update.where_with(name_of));
}

}  // namespace once
