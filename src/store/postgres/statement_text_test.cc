// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/statement_text.h"

#include <gtest/gtest.h>

#include <utility>

namespace once {
namespace {

TEST(StatementText, question_marks_are_numbered) {
  for (const auto& [text, numbered] : {
           std::pair{"SELECT 1", "SELECT 1"},
           {"a = ? AND b = ?", "a = $1 AND b = $2"},
           {"'?' || ? || \"?\"", "'?' || $1 || \"?\""},
           {"'it''s ?' || ?", "'it''s ?' || $1"},
           {"E'\\'?' || ?", "E'\\'?' || $1"},
           {"? -- ?\n, ?", "$1 -- ?\n, $2"},
           {"? /* ? */ ?", "$1 /* ? */ $2"},
           {"$$ ? $$ ?", "$$ ? $$ $1"},
           {"$tag$ ? $$ ? $tag$ ?", "$tag$ ? $$ ? $tag$ $1"},
           {"a ?? 'b' AND c = ?", "a ? 'b' AND c = $1"},
           {"'never closed ?", "'never closed ?"},
           {"/* never closed ?", "/* never closed ?"},
           {"$x$ never closed ?", "$x$ never closed ?"},
           {"price$ = ?", "price$ = $1"},
       })
    EXPECT_EQ(number_parameters(text).text, numbered) << text;
  EXPECT_EQ(number_parameters("?, ?, '?'").parameters, 2u);
}

}  // namespace
}  // namespace once
