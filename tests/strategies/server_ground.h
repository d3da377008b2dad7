// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "strategies/ground.h"

namespace once::testing {

// A ground on a real server (testing/postgres_home.h is such a Home). Every test has a place of its
// own, and every contender a store of its own.
template <class Home>
class ServerGround final : public Ground {
 public:
  ServerGround() : place_(Home::make_place()) {}

  std::shared_ptr<Store> open() override {
    auto opened = Home::open(Home::in(place_));
    return opened ? std::move(*opened) : nullptr;
  }
  bool shared_by_processes() const override { return true; }
  std::string effect_table() const override { return Home::effect_table; }
  void define(const std::string& statement) override {
    if constexpr (requires { Home::schema_commits; })
      Home::administer(statement, Home::in(place_));
    else
      Ground::define(statement);
  }

  static GroundFactory factory() {
    return {Home::name, [] { return std::make_unique<ServerGround<Home>>(); }};
  }

 private:
  const std::string place_;
};

}  // namespace once::testing
