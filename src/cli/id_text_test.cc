// SPDX-License-Identifier: Apache-2.0
#include "cli/id_text.h"

#include <gtest/gtest.h>

namespace once::cli {
namespace {

using namespace std::string_literals;

TEST(IdText, ordinary_ids_stand_for_themselves) {
  for (const char* id : {"order-100", "a b", "/shop|7", "ünï", "base6", "\\x00", "it's"}) {
    EXPECT_EQ(text_of_id(id), id);
    EXPECT_EQ(id_of_text(id), id);
  }
}

TEST(IdText, ids_that_cannot_be_copied_are_base64_and_come_back) {
  EXPECT_EQ(text_of_id("\0\1"s), "base64:AAE=");
  EXPECT_EQ(text_of_id("\xff\1"s), "base64:/wE=");
  for (const std::string& id : {"\0\1"s, "\xff\1"s, "a\nb"s, "a\x1b[31m"s, "\u202e"s,
                                "base64:/wE="s, "base64:"s, "base64:no"s}) {
    EXPECT_TRUE(text_of_id(id).starts_with("base64:")) << text_of_id(id);
    EXPECT_NE(text_of_id(id), id);
    EXPECT_EQ(id_of_text(text_of_id(id)), id);
  }
}

TEST(IdText, what_is_not_base64_is_refused_with_what_to_write) {
  EXPECT_EQ(id_of_text("base64:a"), std::nullopt);
  std::string text = "base64:a";
  EXPECT_NE(id_text().apply(text).find(text_of_id("base64:a")), std::string::npos);
  text = "base64:/wE=";
  EXPECT_EQ(id_text().apply(text), "");
  EXPECT_EQ(text, "\xff\1");
}

TEST(IdText, next_page_is_quoted_for_the_shell) {
  EXPECT_EQ(next_page_text("shop", "\xff\1"s),
            "there are more; go on with --scope 'shop' --from 'base64:/wE='");
  EXPECT_EQ(next_page_text("shop", "it's"),
            R"(there are more; go on with --scope 'shop' --from 'it'\''s')");
}

}  // namespace
}  // namespace once::cli
