// SPDX-License-Identifier: Apache-2.0
#include "model/message_row.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <optional>
#include <string>
#include <vector>

#include "model/message_view.h"

namespace once {
namespace {

// As a store keeps it: key and body in columns that cannot be null.
Message through_a_row(const Message& message) {
  Message read{.id = message.id,
               .key = std::string(view_of(message.key)),
               .body = std::string(view_of(message.body)),
               .headers = {},
               .timestamp_ms = message.timestamp_ms};
  EXPECT_TRUE(decode_headers(encode_headers(message), read));
  return read;
}

std::optional<std::string> any_part() {
  if (*rc::gen::arbitrary<bool>()) return std::nullopt;
  return *rc::gen::arbitrary<std::string>();
}

TEST(MessageRow, absent_and_empty_parts_come_back_as_they_were) {
  EXPECT_TRUE(rc::check([] {
    Message message{.id = "m", .key = any_part(), .body = any_part(), .headers = {}};
    const auto count = *rc::gen::inRange(0, 6);
    for (int i = 0; i < count; ++i)
      message.headers.push_back({*rc::gen::arbitrary<std::string>(), any_part()});
    RC_ASSERT(through_a_row(message) == message);
    RC_ASSERT(message_of(DeliveryView(message).delivery()) == message);
  }));
}

TEST(MessageRow, a_message_with_nothing_unusual_needs_no_extra_bytes) {
  EXPECT_EQ(encode_headers(Message{.id = "m", .body = "b"}), "");
  EXPECT_EQ(encode_headers(Message{.id = "m", .key = "k", .headers = {{"a", "1"}}}), "a|1");
}

// Rows that were written before absent parts were kept.
TEST(MessageRow, rows_of_earlier_versions_can_be_read) {
  Message read{.id = "m", .key = "", .body = ""};
  ASSERT_TRUE(decode_headers("a|1|b|\\e", read));
  EXPECT_EQ(read.key, std::nullopt);
  EXPECT_EQ(read.body, "");
  EXPECT_EQ(read.headers, (std::vector<Header>{{"a", "1"}, {"b", ""}}));
}

TEST(MessageRow, damaged_headers_are_corrupt) {
  for (const char* bytes : {"\\x", ",0", "b,1|a|1", "b,|a|1", "b;0|a|1", "x|a|1", "kbk|a|1"}) {
    Message read;
    const Status status = decode_headers(bytes, read);
    ASSERT_FALSE(status) << bytes;
    EXPECT_EQ(status.error().tag, "corrupt") << bytes;
  }
}

}  // namespace
}  // namespace once
