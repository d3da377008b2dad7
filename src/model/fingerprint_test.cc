// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <once/identity.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace once {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

Fingerprint fingerprint(std::string_view key, std::string_view body, const Headers& headers = {}) {
  std::vector<HeaderView> views;
  for (const auto& [name, value] : headers) views.push_back({name, value});
  Delivery delivery;
  delivery.key = key;
  delivery.body = body;
  delivery.headers = views;
  return fingerprint_of(delivery);
}

rc::Gen<std::string> short_text() {
  return rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab")));
}

TEST(Fingerprint, has_a_version_and_stays_the_same_for_ever) {
  const Fingerprint known = fingerprint("key", "body", {{"name", "value"}});
  EXPECT_EQ(known.version, 1);
  // Written down once: a change of these bytes makes every stored fingerprint a mismatch, and
  // needs another version.
  const std::array<std::uint8_t, 16> expected{0x13, 0x6c, 0x59, 0x4e, 0xe0, 0xe9, 0xb1, 0xf1,
                                              0x11, 0x17, 0x0c, 0xc4, 0xe2, 0xc6, 0xc8, 0xb4};
  EXPECT_EQ(known.digest, expected);
}

TEST(Fingerprint, does_not_depend_on_the_order_of_headers) {
  EXPECT_TRUE(rc::check([] {
    const auto headers = *rc::gen::container<Headers>(rc::gen::pair(short_text(), short_text()));
    Headers shuffled = headers;
    std::reverse(shuffled.begin(), shuffled.end());
    RC_ASSERT(fingerprint("k", "b", headers) == fingerprint("k", "b", shuffled));
  }));
}

TEST(Fingerprint, differs_when_anything_that_lasts_differs) {
  EXPECT_TRUE(rc::check([] {
    const auto text = [] { return *short_text(); };
    const std::string key_a = text(), key_b = text(), body_a = text(), body_b = text();
    Headers headers_a = *rc::gen::container<Headers>(rc::gen::pair(short_text(), short_text()));
    Headers headers_b = *rc::gen::container<Headers>(rc::gen::pair(short_text(), short_text()));
    std::sort(headers_a.begin(), headers_a.end());
    std::sort(headers_b.begin(), headers_b.end());
    const bool same = key_a == key_b && body_a == body_b && headers_a == headers_b;
    RC_ASSERT(same ==
              (fingerprint(key_a, body_a, headers_a) == fingerprint(key_b, body_b, headers_b)));
  }));
}

TEST(Fingerprint, H13_ignores_what_changes_with_every_sending) {
  const Fingerprint plain = fingerprint("k", "b", {{"type", "order"}});
  for (const char* name : {"traceparent", "tracestate", "Traceparent", "baggage", "b3",
                           "X-B3-TraceId", "once-id", "once-attempt", "ONCE-ID"})
    EXPECT_EQ(fingerprint("k", "b", {{name, "x"}, {"type", "order"}}), plain) << name;
  for (const char* name : {"traceparents", "once", "b3x", "x-b3"})
    EXPECT_NE(fingerprint("k", "b", {{name, "x"}, {"type", "order"}}), plain) << name;
}

TEST(Fingerprint, does_not_depend_on_the_delivery) {
  Delivery first;
  first.body = "b";
  Delivery second = first;
  second.offset = 7;
  second.attempt = 3;
  second.timestamp_ms = 9;
  second.partition = "orders-1";
  second.id = "x";
  second.stamp = {1, 2, 3};
  EXPECT_EQ(fingerprint_of(first), fingerprint_of(second));
}

TEST(Fingerprint, key_and_body_cannot_trade_bytes) {
  EXPECT_NE(fingerprint("a", "bc"), fingerprint("ab", "c"));
  EXPECT_NE(fingerprint("", "a"), fingerprint("a", ""));
  EXPECT_NE(fingerprint("", "", {{"a", "bc"}}), fingerprint("", "", {{"ab", "c"}}));
}

}  // namespace
}  // namespace once
