// SPDX-License-Identifier: Apache-2.0
#include "config/cell.h"

#include <gtest/gtest.h>
#include <once/identity.h>

#include "config/message_values.h"
#include "config/timestamp.h"

namespace once {
namespace {

using namespace std::string_literals;

// The value at /v of a body.
Result<Cell> at(const std::string& json, ValueType type) {
  const std::string body = "{\"other\":[1,{}],\"v\":" + json + "}";
  const std::vector<ValueRule> rules{{.name = "v", .field = "/v", .type = type}};
  Delivery delivery;
  delivery.body = body;
  MessageValues values(rules, delivery);
  return *ONCE_TRY(values.cell(0));
}

TEST(Cell, json_of_the_right_type_is_taken) {
  EXPECT_EQ(at(R"("a\u00e9\n")", ValueType::text), Cell("aé\n"s));
  EXPECT_EQ(at("12", ValueType::text), Cell("12"s));
  EXPECT_EQ(at("123456789012345678901234567890", ValueType::text),
            Cell("123456789012345678901234567890"s));
  EXPECT_EQ(at("true", ValueType::text), Cell("true"s));
  EXPECT_EQ(at("-9223372036854775808", ValueType::integer), Cell(INT64_MIN));
  EXPECT_EQ(at("9223372036854775807", ValueType::integer), Cell(INT64_MAX));
  EXPECT_EQ(at("2.5", ValueType::number), Cell(2.5));
  EXPECT_EQ(at("1.50", ValueType::decimal), Cell("1.50"s));
  EXPECT_EQ(at("\"1.50\"", ValueType::decimal), Cell("1.50"s));
  EXPECT_EQ(at("true", ValueType::boolean), Cell(std::int64_t{1}));
  EXPECT_EQ(at("\"AP8=\"", ValueType::bytes), Cell(Bytes{"\0\xff"s}));
  EXPECT_EQ(at(R"({"a": [1, "b"]} )", ValueType::json), Cell(R"({"a": [1, "b"]})"s));
  EXPECT_EQ(at("\"1970-01-01T00:00:01Z\"", ValueType::timestamp), Cell(std::int64_t{1'000'000}));
  EXPECT_EQ(at("1700000000000", ValueType::timestamp), Cell(std::int64_t{1700000000000000}));
  EXPECT_EQ(at("1700000000000", ValueType::milliseconds), Cell(std::int64_t{1700000000000}));
  EXPECT_EQ(at("\"1969-12-31T23:59:59.9999Z\"", ValueType::milliseconds), Cell(std::int64_t{-1}));
}

TEST(Cell, json_of_another_type_is_parked_and_names_the_value) {
  const std::vector<std::pair<std::string, ValueType>> wrong{
      {"{}", ValueType::text},          {"[1]", ValueType::text},
      {"\"12\"", ValueType::integer},   {"1.5", ValueType::integer},
      {"1e3", ValueType::integer},      {"9223372036854775808", ValueType::integer},
      {"true", ValueType::integer},     {"1e999", ValueType::number},
      {"\"1\"", ValueType::number},     {"\"01\"", ValueType::decimal},
      {"\"1,5\"", ValueType::decimal},  {"1", ValueType::boolean},
      {"\"true\"", ValueType::boolean}, {"\"?\"", ValueType::bytes},
      {"5", ValueType::bytes},          {"\"yesterday\"", ValueType::timestamp},
      {"\"\\ud800\"", ValueType::text}, {"tru", ValueType::boolean},
      {"null", ValueType::text},        {"{\"a\": tru}", ValueType::json}};
  for (const auto& [json, type] : wrong) {
    const auto cell = at(json, type);
    ASSERT_FALSE(cell) << json;
    EXPECT_EQ(cell.error().remedy, Remedy::park) << json;
    EXPECT_NE(cell.error().text.find("\"v\" (/v in the body)"), std::string::npos)
        << cell.error().text;
  }
}

TEST(Cell, absent_is_null_a_default_or_a_fault_and_null_is_never_the_default) {
  const std::vector<ValueRule> rules{
      {.name = "a", .field = "/a"},
      {.name = "b", .field = "/b", .nullable = true},
      {.name = "c", .field = "/c", .type = ValueType::integer, .fallback = "7"},
      {.name = "n", .field = "/n", .nullable = true},
      {.name = "m", .field = "/n", .fallback = "x"},
      {.name = "h", .from = ValueFrom::header, .field = "h", .fallback = "eu"},
      {.name = "k", .from = ValueFrom::key},
      {.name = "deep", .field = "/s/t/u", .nullable = true}};
  Delivery delivery;
  delivery.body = R"({"n":null,"s":1})";
  MessageValues values(rules, delivery);
  EXPECT_FALSE(values.cell(0));
  EXPECT_EQ(*values.cell(1).value(), Cell(nullptr));
  EXPECT_EQ(*values.cell(2).value(), Cell(std::int64_t{7}));
  EXPECT_EQ(*values.cell(3).value(), Cell(nullptr));
  EXPECT_FALSE(values.cell(4));
  EXPECT_EQ(*values.cell(5).value(), Cell("eu"s));
  EXPECT_FALSE(values.cell(6));
  EXPECT_EQ(*values.cell(7).value(), Cell(nullptr));
}

TEST(Cell, a_body_that_is_no_json_is_told_so) {
  for (const char* body : {"", "hello", "{\"a\":1", "{\"a\" 1}", "\xff{}"}) {
    const std::vector<ValueRule> rules{{.name = "a", .field = "/a"}};
    Delivery delivery;
    delivery.body = body;
    MessageValues values(rules, delivery);
    const auto cell = values.cell(0);
    ASSERT_FALSE(cell) << body;
    EXPECT_EQ(cell.error().remedy, Remedy::park) << body;
  }
}

TEST(Cell, json_behind_the_frame_of_a_schema_registry_is_read) {
  const std::string frame = "\0\0\0\1\2"s;
  const std::vector<ValueRule> rules{
      {.name = "a", .field = "/a"},
      {.name = "all", .from = ValueFrom::body, .type = ValueType::json}};
  const std::string body = frame + R"({"a":"x"})";
  Delivery delivery;
  delivery.body = body;
  MessageValues values(rules, delivery);
  EXPECT_EQ(*values.cell(0).value(), Cell("x"s));
  EXPECT_EQ(*values.cell(1).value(), Cell(R"({"a":"x"})"s));
  EXPECT_EQ(IdRule::parse("json:/a")->id_of(delivery), "x");
  Delivery other = delivery;
  const std::string newer = "\0\0\0\7\7"s + R"({ "a": "x" })";
  other.body = newer;
  EXPECT_EQ(fingerprint_of(delivery), fingerprint_of(other)) << "the schema says nothing of it";
  const std::string avro = frame + "\x08\x02\x06"s;
  delivery.body = avro;
  MessageValues binary(rules, delivery);
  const auto cell = binary.cell(0);
  ASSERT_FALSE(cell);
  EXPECT_NE(cell.error().text.find("Avro or Protobuf"), std::string::npos) << cell.error().text;
  const auto id = IdRule::parse("json:/a")->id_of(delivery);
  ASSERT_FALSE(id);
  EXPECT_NE(id.error().text.find("Avro or Protobuf"), std::string::npos) << id.error().text;
}

TEST(Cell, key_and_headers_are_read_as_text) {
  const std::vector<HeaderView> headers{{"n", "12"}, {"bad", "\xff"}};
  Delivery delivery;
  delivery.key = "\xfe\xff";
  delivery.headers = headers;
  const std::vector<ValueRule> rules{
      {.name = "n", .from = ValueFrom::header, .field = "n", .type = ValueType::integer},
      {.name = "bad", .from = ValueFrom::header, .field = "bad"},
      {.name = "key", .from = ValueFrom::key},
      {.name = "raw", .from = ValueFrom::key, .type = ValueType::bytes}};
  MessageValues values(rules, delivery);
  EXPECT_EQ(*values.cell(0).value(), Cell(std::int64_t{12}));
  EXPECT_FALSE(values.cell(1));
  EXPECT_FALSE(values.cell(2));
  EXPECT_EQ(*values.cell(3).value(), Cell(Bytes{"\xfe\xff"}));
}

TEST(Cell, json_is_written_as_it_was_meant) {
  const auto json_of = [](const Cell& cell, ValueType type) {
    std::string out;
    append_json(out, cell, type);
    return out;
  };
  EXPECT_EQ(json_of(nullptr, ValueType::text), "null");
  EXPECT_EQ(json_of("a\"\n"s, ValueType::text), R"("a\"\u000a")");
  EXPECT_EQ(json_of("1.50"s, ValueType::decimal), "1.50");
  EXPECT_EQ(json_of(std::int64_t{0}, ValueType::boolean), "false");
  EXPECT_EQ(json_of(Bytes{"\0\xff"s}, ValueType::bytes), "\"AP8=\"");
  EXPECT_EQ(json_of("[1]"s, ValueType::json), "[1]");
}

TEST(Timestamp, moments_of_rfc_3339_are_read) {
  EXPECT_EQ(parse_timestamp_us("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(parse_timestamp_us("2024-02-29 12:30:00.25+01:30"), 1709204400250000);
  EXPECT_EQ(parse_timestamp_us("2023-11-14T22:13:20.1234569Z"), 1700000000123456);
  EXPECT_EQ(parse_timestamp_us("1969-12-31T23:59:59Z"), -1'000'000);
  EXPECT_EQ(parse_timestamp_us("0001-01-01T00:00:00Z"), timestamp_us_min);
  EXPECT_EQ(parse_timestamp_us("9999-12-31T23:59:59.999999Z"), timestamp_us_max);
  for (const char* text :
       {"", "2024-02-30T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01", "2024-01-01T00:00:00",
        "2024-01-01T00:00:00.Z", "24-01-01T00:00:00Z", "2024-01-01T00:00:00+25:00",
        "2024-01-01T00:00:00Zx", "2024-01-01T00:00:00+01", "0000-12-31T23:59:59Z",
        "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"})
    EXPECT_FALSE(parse_timestamp_us(text)) << text;
}

TEST(Timestamp, what_a_database_wrote_is_read_and_written_again) {
  EXPECT_EQ(parse_stored_timestamp_us("2026-11-16 01:43:10.25+00"), 1794793390250000);
  EXPECT_EQ(parse_stored_timestamp_us("2026-11-16 01:43:10+05:30"), 1794773590000000);
  EXPECT_EQ(parse_stored_timestamp_us("2026-11-16 01:43:10"), 1794793390000000);
  for (const char* text : {"0001-01-01 00:00:00.000000", "1969-12-31 23:59:59.999999",
                           "2024-02-29 00:00:00.000001", "9999-12-31 23:59:59.999999"})
    EXPECT_EQ(timestamp_text(*parse_stored_timestamp_us(text)), text);
  EXPECT_EQ(timestamp_ms_of_us(-1), -1);
  EXPECT_EQ(timestamp_ms_of_us(-1000), -1);
  EXPECT_EQ(timestamp_ms_of_us(1999), 1);
  EXPECT_FALSE(timestamp_us_of_ms(1'700'000'000'000'000));  // microseconds taken for milliseconds
}

TEST(Cell, member_that_stands_twice_on_the_way_to_a_value_is_refused) {
  const auto value_in = [](std::string_view body, const std::string& pointer) {
    const std::vector<ValueRule> rules{{.name = "v", .field = pointer, .nullable = true}};
    Delivery delivery;
    delivery.body = body;
    MessageValues values(rules, delivery);
    const auto cell = values.cell(0);
    return cell ? Result<Cell>(**cell) : Result<Cell>(fail(cell.error()));
  };
  for (const char* body : {R"({"v":"a","v":"a"})", R"({"v":1,"x":[],"\u0076":2})",
                           R"({"v":{"w":1},"v":null})", R"({"v":[1,2],"v":3})"}) {
    const auto doubled = value_in(body, "/v");
    ASSERT_FALSE(doubled) << body;
    EXPECT_NE(doubled.error().text.find("twice"), std::string::npos) << doubled.error().text;
  }
  EXPECT_FALSE(value_in(R"({"o":{"v":1},"o":{}})", "/o/v"));
  EXPECT_EQ(value_in(R"({"x":1,"v":"a","x":2})", "/v"), Cell("a"s)) << "nobody looks for x";
  EXPECT_EQ(value_in(R"({"x":1})", "/v"), Cell(nullptr));
  EXPECT_EQ(value_in(R"({"l":[[1],["a"]]})", "/l/1/0"), Cell("a"s));
  EXPECT_EQ(value_in(R"({"l":[["a"]]})", "/l/1/0"), Cell(nullptr));
  EXPECT_EQ(value_in(R"({"l":[["a"]]})", "/l/00"), Cell(nullptr));
}

}  // namespace
}  // namespace once
