// SPDX-License-Identifier: Apache-2.0
#include "store/redis/adapter.h"

#include <once/open.h>

#include <array>
#include <string>

#include "store/redis/state.h"

namespace once {
namespace {

constexpr std::array<std::string_view, 1> schemes{"redis"};

}  // namespace

const Adapter& redis_adapter() {
  static const Adapter adapter{
      .schemes = schemes,
      .store = open_redis_store,
      .store_to_look =
          [](std::string_view url) { return open_redis_store_to_look(std::string(url)); },
      .store_state = [](std::string_view url) { return redis_store_state(std::string(url)); },
      .language = {.redis_commands = true}};
  return adapter;
}

}  // namespace once
