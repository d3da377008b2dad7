// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "conformance/store_fixture.h"
#include "testing/chaos_proxy.h"

namespace once::testing {

// A store on a real server (testing/postgres_home.h is such a Home), behind a proxy that can lose
// the answer to a commit. Every test has a place of its own.
template <class Home>
class ServerUnderTest final : public StoreUnderTest {
 public:
  ServerUnderTest() : place_(Home::make_place()) { open(); }

  Store& store() override { return *store_; }
  void reopen() override {
    store_.reset();
    open();
  }
  std::unique_ptr<Store> open_another() override { return open_here(); }
  void lose_next_commit(bool kept) override {
    ChaosProxy::Fault fault{.match = Home::commit_mark, .client_bytes = std::nullopt};
    if (!kept) fault.client_bytes = 0;
    proxy().arm(fault);
  }
  void jump_clock(std::int64_t ms) override { skew_ms_ += ms; }
  std::string effect_table() const override { return Home::effect_table; }
  std::string kinds_table() const override { return Home::kinds_table; }
  void define(const std::string& statement) override {
    if constexpr (requires { Home::schema_commits; })
      Home::administer(statement, Home::in(place_));
    else
      StoreUnderTest::define(statement);
  }

  static StoreFactory factory() {
    return {Home::name, [] { return std::make_unique<ServerUnderTest<Home>>(); }};
  }

 private:
  static ChaosProxy& proxy() {
    static ChaosProxy made(Home::server().port());
    return made;
  }
  void open() { store_ = open_here(); }
  std::unique_ptr<Store> open_here() {
    const std::string url = Home::in(place_, Home::server().url_at(proxy().port()));
    auto opened = Home::open(url, {.clock_skew_ms = [this] { return skew_ms_.load(); }});
    if (!opened) throw std::runtime_error(opened.error().text);
    return std::move(opened).value();
  }

  const std::string place_;
  std::atomic<std::int64_t> skew_ms_{0};
  std::unique_ptr<Store> store_;
};

}  // namespace once::testing
