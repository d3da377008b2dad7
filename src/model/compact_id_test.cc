// SPDX-License-Identifier: Apache-2.0
#include "model/compact_id.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

namespace once {
namespace {

constexpr const char* uuid = "01890a5d-ac96-774b-bcce-b302099a8057";

std::string compact(std::string_view id) { return std::string(CompactId(id).bytes()); }

// Ids that are close to what the encoding treats differently.
rc::Gen<std::string> any_id() {
  const auto hex = rc::gen::elementOf(std::string("0123456789abcdef"));
  const auto uuid_text = rc::gen::map(rc::gen::container<std::string>(32, hex), [](auto text) {
    for (const std::size_t at : {8u, 13u, 18u, 23u}) text.insert(at, "-");
    return text;
  });
  const auto spoiled = rc::gen::map(rc::gen::pair(uuid_text, rc::gen::inRange(0, 36)), [](auto p) {
    p.first[static_cast<std::size_t>(p.second)] ^= 0x20;  // another case, no hyphen, no digit
    return p.first;
  });
  const auto marked =
      rc::gen::map(rc::gen::pair(rc::gen::inRange(0, 3), rc::gen::container<std::string>(16, hex)),
                   [](auto p) { return std::string(1, static_cast<char>(p.first)) + p.second; });
  return rc::gen::oneOf(uuid_text, spoiled, marked, rc::gen::arbitrary<std::string>());
}

TEST(CompactId, keeps_a_uuid_in_17_bytes) {
  EXPECT_EQ(compact(uuid).size(), 17u);
  EXPECT_EQ(expand_id(compact(uuid)), uuid);
}

TEST(CompactId, keeps_other_ids_as_they_are) {
  for (const char* id :
       {"order 100", "01890A5D-AC96-774B-BCCE-B302099A8057", "01890a5d-ac96-774b-bcce-b302099a805",
        "01890a5dac96774bbcceb302099a8057", "01890a5d-ac96-774b-bcce_b302099a8057"})
    EXPECT_EQ(compact(id), id);
}

TEST(CompactId, no_other_id_is_kept_as_the_bytes_of_a_uuid) {
  const std::string bytes = compact(uuid);
  EXPECT_NE(compact(bytes), bytes);
  EXPECT_EQ(expand_id(compact(bytes)), bytes);
}

TEST(CompactId, every_id_comes_back) {
  EXPECT_TRUE(rc::check([] {
    const std::string id = *any_id();
    RC_ASSERT(expand_id(compact(id)) == id);
  }));
}

TEST(CompactId, uuids_keep_their_order) {
  EXPECT_TRUE(rc::check([](std::uint64_t a, std::uint64_t b) {
    const auto text = [](std::uint64_t number) {
      std::string id = uuid;
      for (std::size_t i = 0; i < 8; ++i) id[i] = "0123456789abcdef"[number >> (28 - 4 * i) & 15];
      return id;
    };
    RC_ASSERT((compact(text(a)) < compact(text(b))) == (text(a) < text(b)));
  }));
}

}  // namespace
}  // namespace once
