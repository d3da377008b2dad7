// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/adapter.h"

#include <once/open.h>

#include <array>
#include <string>

#include "store/postgres/state.h"

namespace once {
namespace {

constexpr std::array<std::string_view, 2> schemes{"postgresql", "postgres"};

}  // namespace

const Adapter& postgres_adapter() {
  static const Adapter adapter{
      .schemes = schemes,
      .store = open_postgresql_store,
      .store_to_look =
          [](std::string_view url) { return open_postgres_store_to_look(std::string(url)); },
      .store_state = [](std::string_view url) { return postgres_store_state(std::string(url)); },
      .language = {.sql = SqlDialect::postgresql}};
  return adapter;
}

}  // namespace once
