// SPDX-License-Identifier: Apache-2.0
#include "model/hint.h"

#include <gtest/gtest.h>

#include <string>

namespace once {
namespace {

constexpr HintPlace place{.scope = "bank/deposits", .store = "sqlite:my bank.db"};

TEST(Hint, words_are_quoted_for_the_shell_where_they_have_to_be) {
  EXPECT_EQ(hint({"position", "set", "--partition", "a/0", "--to", "first"}),
            "`once position set --partition a/0 --to first`");
  EXPECT_EQ(hint({"trace", "it's a `test`", ""}), "`once trace 'it'\\''s a `test`' ''`");
}

TEST(Hint, what_is_not_said_yet_is_added_once) {
  const std::string text = "Look: `once park ls` and `once outbox ls`; see `once park ls --help`.";
  const std::string whole = with_complete_hints(text, place);
  EXPECT_EQ(whole,
            "Look: `once park ls --scope bank/deposits --store 'sqlite:my bank.db'` and `once "
            "outbox ls --store 'sqlite:my bank.db'`; see `once park ls --help`.");
  EXPECT_EQ(with_complete_hints(whole, place), whole);
  EXPECT_EQ(with_complete_hints(with_complete_hints(text, {.scope = place.scope}),
                                {.scope = "other", .store = place.store}),
            whole);
  EXPECT_EQ(with_complete_hints(text, {}), text);
}

TEST(Hint, what_is_no_command_stays_and_so_do_backticks_in_words) {
  for (const char* text : {"", "nothing", "`once", "`once park ls", "`twice park ls` at once"})
    EXPECT_EQ(with_complete_hints(text, place), text);
  EXPECT_EQ(with_complete_hints(hint({"trace", "a`b' c"}), {.scope = "s"}),
            "`once trace 'a`b'\\'' c' --scope s`");
  EXPECT_EQ(with_complete_hints("`once topic show file:a`", place), "`once topic show file:a`");
}

}  // namespace
}  // namespace once
