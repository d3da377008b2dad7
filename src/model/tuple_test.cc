// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <once/identity.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace once {
namespace {

using Parts = std::vector<std::string>;

std::string encode(const Parts& parts) {
  const std::vector<std::string_view> views(parts.begin(), parts.end());
  return encode_tuple(views);
}

// Few different bytes, so that parts often differ in nothing but where they are cut.
rc::Gen<Parts> parts() {
  using namespace std::string_literals;
  return rc::gen::container<Parts>(rc::gen::container<std::string>(rc::gen::elementOf("ae|\\\0"s)));
}

TEST(Tuple, comes_back_as_it_was) {
  EXPECT_TRUE(rc::check([] {
    const Parts original = *parts();
    RC_ASSERT(decode_tuple(encode(original)).value() == original);
  }));
}

TEST(Tuple, different_lists_have_different_texts) {
  EXPECT_TRUE(rc::check([] {
    const Parts a = *parts();
    const Parts b = *parts();
    RC_ASSERT((a == b) == (encode(a) == encode(b)));
  }));
}

TEST(Tuple, a_text_that_decodes_is_the_only_one_for_its_parts) {
  EXPECT_TRUE(rc::check([] {
    const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ae|\\")));
    const auto decoded = decode_tuple(text);
    if (decoded) RC_ASSERT(encode(*decoded) == text);
  }));
}

TEST(Tuple, H14_cuts_at_different_places_are_different_ids) {
  EXPECT_NE(encode({"a", "bc"}), encode({"ab", "c"}));
  EXPECT_NE(encode({"a|b", "c"}), encode({"a", "b|c"}));
  EXPECT_NE(encode({"a"}), encode({"a", ""}));
  EXPECT_NE(encode({}), encode({""}));
  EXPECT_NE(encode({"a\\", "b"}), encode({"a", "\\b"}));
}

TEST(Tuple, ordinary_parts_stay_readable) {
  EXPECT_EQ(encode({"order", "100"}), "order|100");
  EXPECT_EQ(encode({"100"}), "100");
}

TEST(Tuple, what_no_encoder_writes_is_refused) {
  for (const char* text : {"\\", "a\\", "\\x", "|", "a|", "|a", "a\\e", "\\ea", "\\e\\e"}) {
    const auto decoded = decode_tuple(text);
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(decoded.error().tag, "tuple");
  }
}

}  // namespace
}  // namespace once
