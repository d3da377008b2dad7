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

TEST(StatementText, a_handler_may_not_end_the_transaction_or_write_the_books) {
  for (const char* text :
       {"COMMIT", "  commit", "-- x\nROLLBACK", "/* a */ Savepoint a", "END", "COPY t FROM STDIN",
        "DELETE FROM once_ledger", "UPDATE \"once_position\" SET fence = 0", "", " -- nothing",
        "WITH a AS (DELETE FROM ONCE_OUTBOX RETURNING 1) SELECT * FROM a"})
    EXPECT_EQ(check_handler_statement(text).error().tag, "sql") << text;
  for (const char* text :
       {"SELECT * FROM once_ledger_readable", "UPDATE account SET note = 'once_ledger'",
        "INSERT INTO commit_log VALUES ('COMMIT')", "UPDATE once_counter SET last = 1"})
    EXPECT_TRUE(check_handler_statement(text)) << text;
}

}  // namespace
}  // namespace once
