// SPDX-License-Identifier: Apache-2.0
#include "config/bindable.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace once {
namespace {

using Names = std::vector<std::string>;

const Names column_types{"smallint",
                         "bigint",
                         "numeric",
                         "double precision",
                         "boolean",
                         "timestamp with time zone",
                         "timestamp without time zone",
                         "date",
                         "interval",
                         "uuid",
                         "json",
                         "jsonb",
                         "text",
                         "character varying",
                         "bytea",
                         "inet",
                         ""};

Names refused_for(ValueType type) {
  const ValueRule rule{.name = "at", .type = type};
  Names refused;
  for (const std::string& column : column_types)
    if (!reason_not_bindable(rule, column).empty()) refused.push_back(column);
  return refused;
}

TEST(Bindable, only_what_no_value_of_a_type_can_be_is_refused) {
  const Names moments{"timestamp with time zone", "timestamp without time zone"};
  EXPECT_EQ(refused_for(ValueType::text), Names{});
  EXPECT_EQ(refused_for(ValueType::integer), (Names{moments[0], moments[1], "uuid"}));
  EXPECT_EQ(refused_for(ValueType::json), (Names{moments[0], moments[1], "uuid"}));
  for (const ValueType type : {ValueType::number, ValueType::decimal, ValueType::boolean})
    EXPECT_EQ(refused_for(type), (Names{moments[0], moments[1], "date", "uuid"}));
  EXPECT_EQ(refused_for(ValueType::milliseconds),
            (Names{"smallint", "boolean", moments[0], moments[1], "date", "uuid"}));
  EXPECT_EQ(refused_for(ValueType::timestamp),
            (Names{"smallint", "bigint", "numeric", "double precision", "boolean", "interval",
                   "uuid", "json", "jsonb"}));
  EXPECT_EQ(refused_for(ValueType::bytes),
            (Names{"smallint", "bigint", "numeric", "double precision", "boolean", moments[0],
                   moments[1], "date", "interval", "jsonb"}));
}

TEST(Bindable, reason_names_the_value_both_types_and_the_cast_to_write) {
  const auto reason = [](ValueType type, std::string_view column) {
    return reason_not_bindable({.name = "at", .type = type}, column);
  };
  EXPECT_EQ(reason(ValueType::milliseconds, "timestamp with time zone"),
            "the value \"at\" has the type milliseconds, and the database wants timestamp with "
            "time zone: declare it with type = \"timestamp\", or, in SQL, write "
            "to_timestamp(:at / 1000.0) for milliseconds since 1970");
  EXPECT_EQ(reason(ValueType::timestamp, "bigint"),
            "the value \"at\" has the type timestamp, and the database wants bigint: declare it "
            "with type = \"milliseconds\", or, in SQL, write extract(epoch FROM "
            ":at::timestamptz)");
  EXPECT_NE(reason(ValueType::timestamp, "jsonb").find("to_json(:at::timestamptz)"),
            std::string::npos);
  EXPECT_NE(reason(ValueType::milliseconds, "integer").find("make the column a bigint"),
            std::string::npos);
}

}  // namespace
}  // namespace once
