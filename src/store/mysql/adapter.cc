// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/adapter.h"

#include <once/open.h>

#include <array>
#include <string>

#include "store/mysql/state.h"

namespace once {
namespace {

constexpr std::array<std::string_view, 2> schemes{"mysql", "mariadb"};

}  // namespace

const Adapter& mysql_adapter() {
  static const Adapter adapter{
      .schemes = schemes,
      .store = open_mysql_store,
      .store_to_look =
          [](std::string_view url) { return open_mysql_store_to_look(std::string(url)); },
      .store_state = [](std::string_view url) { return mysql_store_state(std::string(url)); },
      .language = {.sql = SqlDialect::mysql}};
  return adapter;
}

}  // namespace once
