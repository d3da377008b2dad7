// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/each_function.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace once {
namespace {

const std::vector<std::string> two{"bigint", "character varying"};

TEST(EachFunction, the_write_has_variables_of_the_types_that_the_server_gave_its_parameters) {
  const auto made =
      each_function("once_each_7", "UPDATE a SET b = ? WHERE c = ? AND d ?? '?'", two);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->loop,
            "UPDATE a SET b = (once_p1::bigint) WHERE c = (once_p2::character varying) "
            "AND d ? '?'");
  EXPECT_EQ(made->call, "SELECT pg_temp.once_each_7($1, $2)");
  EXPECT_TRUE(made->create.starts_with(
      "CREATE OR REPLACE FUNCTION pg_temp.once_each_7(once_a1 text[], once_a2 text[]) "))
      << made->create;
  EXPECT_NE(
      made->create.find("FOR once_p1, once_p2 IN SELECT * FROM unnest(once_a1, once_a2) LOOP"),
      std::string::npos);
  // A comment at the end of the write must not hide what is behind it.
  EXPECT_NE(made->create.find("\n    " + made->loop + "\n    ;\n"), std::string::npos);
}

TEST(EachFunction, the_text_cannot_end_the_function_that_it_is_in) {
  const std::vector<std::string> one{"text"};
  const auto made = each_function("f", "INSERT INTO a VALUES (?, $once$b$once$, '$once_1$')", one);
  ASSERT_TRUE(made);
  const std::string tag = "$once_2$";
  const std::size_t begin = made->create.find(tag);
  ASSERT_NE(begin, std::string::npos);
  EXPECT_EQ(made->create.find(tag, begin + 1), made->create.size() - tag.size());
}

TEST(EachFunction, what_means_another_thing_in_a_function_is_refused) {
  const std::vector<std::string> one{"text"};
  EXPECT_FALSE(each_function("f", "INSERT INTO a VALUES (?, $1)", one));
  EXPECT_TRUE(each_function("f", "INSERT INTO a VALUES (?, '$1')", one));
  EXPECT_FALSE(each_function("f", "INSERT INTO a VALUES (?) /* never closed", one));
  EXPECT_FALSE(each_function("f", "INSERT INTO a VALUES (?, ?)", one));
  EXPECT_FALSE(each_function("f", "INSERT INTO a VALUES (?)", two));
}

TEST(EachFunction, counts_are_read_as_the_server_prints_them) {
  using Counts = std::vector<std::int64_t>;
  EXPECT_EQ(counts_in("{}"), Counts{});
  EXPECT_EQ(counts_in("{7}"), Counts{7});
  EXPECT_EQ(counts_in("{1,0,20}"), (Counts{1, 0, 20}));
  EXPECT_EQ(counts_in(""), Counts{});
  EXPECT_EQ(counts_in("{1,2"), Counts{1});
}

}  // namespace
}  // namespace once
