// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/adapter.h"

#include <fmt/format.h>
#include <once/open.h>

#include <array>
#include <string>

#include "base/url.h"
#include "store/sqlite/state.h"

namespace once {
namespace {

constexpr std::array<std::string_view, 1> schemes{"sqlite"};

Result<std::string> path_of(std::string_view text) {
  Url url = ONCE_TRY(parse_url(text));
  ONCE_TRY(require_parameters(url, {}));
  if (url.path.empty() || url.path.ends_with('/'))
    return fail(Remedy::stop, "url",
                fmt::format("\"{}\" names no database file; write sqlite:PATH", shown_url(text)));
  return std::move(url.path);
}

}  // namespace

const Adapter& sqlite_adapter() {
  static const Adapter adapter{
      .schemes = schemes,
      .store = [](std::string_view url) -> Result<std::unique_ptr<Store>> {
        return open_sqlite_store(ONCE_TRY(path_of(url)));
      },
      .store_to_look = [](std::string_view url) -> Result<std::unique_ptr<Store>> {
        return open_sqlite_store_to_look(ONCE_TRY(path_of(url)));
      },
      .store_state = [](std::string_view url) -> Result<StoreState> {
        return sqlite_store_state(ONCE_TRY(path_of(url)));
      },
      .language = {.sql = SqlDialect::sqlite},
      .store_is_file = true};
  return adapter;
}

}  // namespace once
