// SPDX-License-Identifier: Apache-2.0
#include "cli/message_format.h"

#include <gtest/gtest.h>

namespace once::cli {
namespace {

std::string text_of(std::string_view format, const Delivery& delivery) {
  return MessageFormat::parse(format).value().text_of(
      delivery, [](std::string_view bytes) { return std::string(bytes); });
}

Delivery order() {
  static const std::vector<HeaderView> headers{{"kind", "paid"}, {"n", "7"}};
  Delivery delivery;
  delivery.partition = "orders/3";
  delivery.offset = 41;
  delivery.id = "order-7";
  delivery.key = "ann";
  delivery.body = "5 pieces";
  delivery.timestamp_ms = 1234;
  delivery.headers = headers;
  return delivery;
}

TEST(MessageFormat, puts_the_parts_of_a_message_where_they_are_asked_for) {
  EXPECT_EQ(text_of("%t [%p] at %o: %k=%s\\n", order()), "orders [3] at 41: ann=5 pieces\n");
  EXPECT_EQ(text_of("%T %i %h %K %S%%", order()), "1234 order-7 kind=paid,n=7 3 8%");
  EXPECT_EQ(text_of("plain\\t\\\\", order()), "plain\t\\");
  EXPECT_EQ(text_of("%s\\0", order()), std::string("5 pieces\0", 9));
  EXPECT_EQ(text_of("", order()), "");
}

TEST(MessageFormat, tells_what_is_absent_from_what_is_empty) {
  Delivery delivery = order();
  delivery.key = "";
  delivery.body = {};
  EXPECT_EQ(text_of("%K %S", delivery), "0 -1");
}

TEST(MessageFormat, refuses_what_it_does_not_know) {
  for (const char* text : {"%x", "100%", "\\q"}) {
    const auto format = MessageFormat::parse(text);
    ASSERT_FALSE(format) << text;
    EXPECT_EQ(format.error().tag, "usage");
  }
}

}  // namespace
}  // namespace once::cli
