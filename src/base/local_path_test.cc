// SPDX-License-Identifier: Apache-2.0
#include "base/local_path.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace once {
namespace {

TEST(LocalPath, an_absolute_url_leads_to_the_same_place_from_everywhere) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(absolute_url("file:data/a"), "file:" + here + "/data/a");
  EXPECT_EQ(absolute_url("file:./x/../a%25%3fb?end=stop"), "file:" + here + "/a%25%3Fb?end=stop");
  EXPECT_EQ(absolute_url("sqlite:shop.db"), "sqlite:" + here + "/shop.db");
  EXPECT_EQ(absolute_url("kafka://h/a"), "kafka://h/a");
  EXPECT_EQ(absolute_url("dead letters"), "dead letters");
}

}  // namespace
}  // namespace once
