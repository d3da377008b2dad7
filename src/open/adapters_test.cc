// SPDX-License-Identifier: Apache-2.0
#include "open/adapters.h"

#include <gtest/gtest.h>

#include <set>

namespace once {
namespace {

TEST(Adapters, scheme_belongs_to_one_adapter) {
  std::set<std::string_view> seen;
  for (const Adapter* adapter : adapters()) {
    EXPECT_FALSE(adapter->schemes.empty());
    for (const std::string_view scheme : adapter->schemes)
      EXPECT_TRUE(seen.insert(scheme).second) << scheme;
  }
}

TEST(Adapters, what_belongs_together_is_there_together) {
  for (const Adapter* adapter : adapters()) {
    const std::string_view scheme = adapter->schemes.front();
    EXPECT_TRUE(adapter->source || adapter->sink || adapter->store) << scheme;
    EXPECT_EQ(adapter->store_state == nullptr, adapter->store_to_look == nullptr) << scheme;
    // A destination that is missing must be told from one that is away.
    EXPECT_TRUE(adapter->sink == nullptr || adapter->topics != nullptr) << scheme;
    EXPECT_TRUE(adapter->source_to_look == nullptr || adapter->source != nullptr) << scheme;
  }
}

TEST(Adapters, one_that_cannot_do_it_is_not_found) {
  const auto adapter =
      adapter_of("sqlite:a", "sink", [](const Adapter& one) { return one.sink != nullptr; });
  ASSERT_FALSE(adapter);
  EXPECT_EQ(adapter.error().tag, "url");
  EXPECT_NE(adapter.error().text.find("known: file:"), std::string::npos) << adapter.error().text;
}

}  // namespace
}  // namespace once
