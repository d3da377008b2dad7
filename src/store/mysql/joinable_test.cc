// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/joinable.h"

#include <gtest/gtest.h>

namespace once {
namespace {

TEST(Joinable, what_only_depends_on_its_values_and_its_row_is) {
  for (const char* statement :
       {"INSERT INTO t VALUES (?, ?)", "INSERT INTO t (a, b) VALUES (?, GREATEST(?, 1))",
        "INSERT IGNORE INTO s.t (a) VALUES (?)", "INSERT INTO `s`.`t` (a) VALUES (?)",
        "REPLACE INTO t(a) VALUES(?)", "UPDATE t SET a = a + ? WHERE (b = ? OR c IN (1, 2))",
        "DELETE FROM t WHERE a = ? AND (b)", "UPDATE t SET a = NOW() WHERE b = ?",
        "INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = a + VALUES(a)",
        "UPDATE t SET a = '@' WHERE b = ?"})
    EXPECT_TRUE(is_joinable(statement)) << statement;
}

TEST(Joinable, what_depends_on_the_session_or_on_other_rows_is_not) {
  for (const char* statement :
       {"INSERT INTO t VALUES (LAST_INSERT_ID(), ?)", "UPDATE t SET a = last_insert_id (a + ?)",
        "UPDATE t SET a = @n := @n + ?", "INSERT INTO t VALUES (?, @@last_insert_id)",
        "INSERT INTO t VALUES (?, (SELECT max(a) FROM u))", "INSERT INTO t SELECT ?",
        "UPDATE t SET a = my_function(?)", "UPDATE t SET a = s.my_function(?)",
        "UPDATE t SET a = `f`(?)", "INSERT INTO t VALUES (ROW_COUNT(), ?)",
        "UPDATE t SET a = RAND() * ?", "SELECT ?", "CALL p(?)"})
    EXPECT_FALSE(is_joinable(statement)) << statement;
}

}  // namespace
}  // namespace once
