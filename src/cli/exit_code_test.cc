// SPDX-License-Identifier: Apache-2.0
#include "cli/exit_code.h"

#include <gtest/gtest.h>

namespace once::cli {
namespace {

int code(Remedy remedy, std::string_view tag) {
  return exit_code_of(Error{remedy, std::string(tag), "text", std::nullopt});
}

TEST(ExitCode, follows_the_remedy) {
  EXPECT_EQ(code(Remedy::stop, "busy"), 3);
  EXPECT_EQ(code(Remedy::retry, "full"), 4);
  EXPECT_EQ(code(Remedy::recheck, "io"), 5);
  EXPECT_EQ(code(Remedy::park, "id"), 6);
}

TEST(ExitCode, of_some_tags_is_the_same_for_every_remedy) {
  for (const Remedy remedy : {Remedy::retry, Remedy::recheck, Remedy::park, Remedy::stop}) {
    EXPECT_EQ(code(remedy, "corrupt"), 7);
    EXPECT_EQ(code(remedy, "usage"), 2);
    EXPECT_EQ(code(remedy, "url"), 2);
    EXPECT_EQ(code(remedy, "input"), 2);
    EXPECT_EQ(code(remedy, "broken"), 1);
    EXPECT_EQ(code(remedy, "not_known"), 8);
    EXPECT_EQ(code(remedy, "interrupted"), 130);
  }
}

}  // namespace
}  // namespace once::cli
