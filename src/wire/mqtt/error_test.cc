// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/error.h"

#include <gtest/gtest.h>

namespace once::mqtt {
namespace {

struct Case {
  std::uint8_t reason;
  Remedy remedy;
  const char* tag;
};

TEST(MqttError, every_kind_has_its_remedy) {
  for (const Case& known : {
           Case{0x10, Remedy::retry, "unroutable"},
           Case{0x80, Remedy::retry, "mqtt"},
           Case{0x84, Remedy::stop, "config"},
           Case{0x85, Remedy::stop, "config"},
           Case{0x86, Remedy::stop, "denied"},
           Case{0x87, Remedy::stop, "denied"},
           Case{0x88, Remedy::retry, "away"},
           Case{0x8B, Remedy::retry, "away"},
           Case{0x8E, Remedy::stop, "fenced"},
           Case{0x8F, Remedy::stop, "config"},
           Case{0x90, Remedy::stop, "config"},
           Case{0x95, Remedy::park, "too_large"},
           Case{0x97, Remedy::retry, "busy"},
           Case{0x99, Remedy::park, "refused"},
           Case{0x9B, Remedy::stop, "config"},
           Case{0x9E, Remedy::stop, "config"},
           Case{0xFF, Remedy::retry, "mqtt"},
       }) {
    const Error error = error_from_reason(known.reason, "mqtt://h/t", "publish", "because");
    EXPECT_EQ(error.remedy, known.remedy) << error.text;
    EXPECT_EQ(error.tag, known.tag) << error.text;
    EXPECT_EQ(error.text.find("mqtt://h/t: cannot publish: "), 0u) << error.text;
    EXPECT_NE(error.text.find("because"), std::string::npos) << error.text;
  }
}

TEST(MqttError, the_codes_of_3_1_1_mean_the_same) {
  EXPECT_EQ(reason_of_return_code(0), 0);
  EXPECT_EQ(reason_of_return_code(1), 0x84);
  EXPECT_EQ(reason_of_return_code(2), 0x85);
  EXPECT_EQ(reason_of_return_code(3), 0x88);
  EXPECT_EQ(reason_of_return_code(4), 0x86);
  EXPECT_EQ(reason_of_return_code(5), 0x87);
  EXPECT_EQ(reason_of_return_code(77), 0x80);
}

}  // namespace
}  // namespace once::mqtt
