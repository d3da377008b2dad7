// SPDX-License-Identifier: Apache-2.0
#include "log/address.h"

#include <gtest/gtest.h>

namespace once {
namespace {

using namespace std::string_view_literals;

LogAddress address_of(std::string_view text) { return log_address_of(*parse_url(text)).value(); }

TEST(LogAddress, is_directory_and_topic) {
  EXPECT_EQ(address_of("file:data/orders"), (LogAddress{"data", "orders"}));
  EXPECT_EQ(address_of("file:/orders"), (LogAddress{"/", "orders"}));
  EXPECT_EQ(address_of("file:orders"), (LogAddress{".", "orders"}));
  EXPECT_EQ(address_of("file:/a//b/orders"), (LogAddress{"/a//b", "orders"}));
}

TEST(LogAddress, without_a_topic_is_refused) {
  for (const auto text : {"file:"sv, "file:/"sv, "file:data/"sv, "file:data/.."sv, "file:."sv}) {
    const auto address = log_address_of(*parse_url(text));
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().tag, "url");
    EXPECT_NE(address.error().text.find("file:"), std::string::npos);
  }
}

}  // namespace
}  // namespace once
