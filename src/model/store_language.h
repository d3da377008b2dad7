// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <optional>

namespace once {

// What the handlers of a file can say to a store. Known before the store is opened: nothing is
// touched while the file is wrong.
struct StoreLanguage {
  std::optional<SqlDialect> sql = std::nullopt;  // none: it runs no SQL
  bool redis_commands = false;
};

}  // namespace once
