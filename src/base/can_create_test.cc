// SPDX-License-Identifier: Apache-2.0
#include "base/can_create.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace once {
namespace {

TEST(CanCreate, file_is_possible_where_a_directory_is_or_can_be_made_and_nothing_is_left) {
  const auto home = std::filesystem::temp_directory_path() / "once_can_create_test";
  std::filesystem::remove_all(home);
  std::filesystem::create_directory(home);
  EXPECT_TRUE(check_can_create(home / "x.db"));
  EXPECT_TRUE(check_can_create(home / "a" / "b" / "x.db"));
  EXPECT_TRUE(check_can_create("x.db"));
  EXPECT_TRUE(std::filesystem::is_empty(home));
  std::filesystem::remove_all(home);
}

TEST(CanCreate, file_system_that_takes_no_files_is_told_to_root_as_well) {
  const Status refused = check_can_create("/proc/x.db");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().remedy, Remedy::stop);
  EXPECT_NE(refused.error().text.find("/proc/x.db"), std::string::npos);
  EXPECT_FALSE(check_can_create("/dev/null/x.db"));
}

}  // namespace
}  // namespace once
