// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <once/identity.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "model/fingerprint.h"

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
  return fingerprint_of(delivery, {.kind = ContentRule::Kind::everything});
}

Fingerprint fingerprint_by(std::string_view rule, std::string_view body, std::string_view key = "",
                           std::string_view tenant = "") {
  const HeaderView header{"tenant", tenant};
  Delivery delivery;
  delivery.key = key;
  delivery.body = body;
  if (!tenant.empty()) delivery.headers = std::span(&header, 1);
  return fingerprint_of(delivery, ContentRule::parse(rule).value());
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

TEST(ContentRule, text_and_rule_are_each_others_opposite) {
  for (const char* text : {"none", "json", "everything", "fields:/a", "fields:/a/b,key,header:x"})
    EXPECT_EQ(ContentRule::parse(text).value().text(), text);
  EXPECT_EQ(ContentRule{}.text(), "json");
  for (const char* text :
       {"", "JSON", "fields", "fields:", "fields:a", "fields:/a,", "header:x", "fields:header:"})
    EXPECT_EQ(ContentRule::parse(text).error().tag, "config") << text;
}

// A resend is written by another run of the producer: what it means is the same.
TEST(Fingerprint, H13_of_json_does_not_depend_on_how_it_is_written) {
  const std::string plain = R"({"amount":100,"to":{"iban":"DE","name":"J\u00f6rg"},"tags":[1,2]})";
  for (const char* same : {
           R"( { "tags" : [ 1 , 2 ] , "to":{"name":"Jörg","iban":"DE"},  "amount":100 } )",
           R"({"amount":100.0,"to":{"iban":"DE","name":"J\u00f6rg"},"tags":[1,2]})",
           R"({"amount":1e2,"to":{"iban":"DE","name":"J\u00F6rg"},"tags":[1.00,20e-1]})",
       })
    EXPECT_EQ(fingerprint_by("json", same, "another key"), fingerprint_by("json", plain)) << same;
  for (const char* other : {
           R"({"amount":101,"to":{"iban":"DE","name":"Jörg"},"tags":[1,2]})",
           R"({"amount":"100","to":{"iban":"DE","name":"Jörg"},"tags":[1,2]})",
           R"({"amount":100,"to":{"iban":"DE","name":"Jörg"},"tags":[2,1]})",
           R"({"amount":100,"to":{"iban":"DE","name":"Jörg"}})",
       })
    EXPECT_NE(fingerprint_by("json", other), fingerprint_by("json", plain)) << other;
}

TEST(Fingerprint, numbers_are_compared_with_all_their_digits) {
  const auto of = [](const std::string& number) {
    return fingerprint_by("json", "{\"n\":" + number + "}");
  };
  EXPECT_NE(of("1234567890123456.78"), of("1234567890123456.79"));
  EXPECT_NE(of("0.1"), of("0.10000000000000001"));
  EXPECT_NE(of("123456789012345678901"), of("123456789012345678902"));
  EXPECT_NE(of("1"), of("-1"));
  EXPECT_NE(of("1e10"), of("1e11"));
  EXPECT_EQ(of("-0"), of("0.000"));
  EXPECT_EQ(of("0.00120"), of("12E-4"));
  EXPECT_EQ(of("100200"), of("1002e+2"));
}

TEST(Fingerprint, what_is_no_json_is_compared_byte_by_byte) {
  for (const std::string body :
       {"", "pay 100", "{", "{\"a\":1}}", "{\"a\":1} x", "{\"a\":01}", "[1,]", "100", "\xff{}"}) {
    EXPECT_EQ(fingerprint_by("json", body), fingerprint_by("json", body));
    EXPECT_NE(fingerprint_by("json", body), fingerprint_by("json", body + " ")) << body;
  }
  std::string deep(3000, '[');
  deep += std::string(3000, ']');
  EXPECT_NE(fingerprint_by("json", deep), fingerprint_by("json", deep + " "));
  EXPECT_NE(fingerprint_by("json", R"({"a":1,"a":2})"), fingerprint_by("json", R"({"a":2,"a":1})"));
}

TEST(Fingerprint, of_chosen_fields_sees_these_and_no_others) {
  const std::string rule = "fields:/amount,/to,key,header:tenant";
  const auto plain = fingerprint_by(rule, R"({"amount":5,"to":"a","call":1})", "k", "t");
  EXPECT_EQ(fingerprint_by(rule, R"({"call":2,"to":"a","amount":5.0})", "k", "t"), plain);
  EXPECT_NE(fingerprint_by(rule, R"({"amount":6,"to":"a","call":1})", "k", "t"), plain);
  EXPECT_NE(fingerprint_by(rule, R"({"amount":5,"to":"a","call":1})", "l", "t"), plain);
  EXPECT_NE(fingerprint_by(rule, R"({"amount":5,"to":"a","call":1})", "k", "u"), plain);
  EXPECT_NE(fingerprint_by(rule, R"({"amount":5})", "k", "t"), plain);
  EXPECT_NE(fingerprint_by(rule, "text", "k", "t"), fingerprint_by(rule, "other", "k", "t"));
  EXPECT_NE(fingerprint_by("fields:/a", R"({"a":null})"), fingerprint_by("fields:/a", "{}"));
}

// A part that is absent is not an empty one; the digests stay what they were, so that rows which an
// earlier version stored, for which both were the same, are no mismatches.
TEST(Fingerprint, absent_is_not_empty_and_rows_of_earlier_versions_are_no_mismatches) {
  const std::string_view absent;
  for (const char* text : {"json", "everything", "fields:/a,key"}) {
    const ContentRule rule = ContentRule::parse(text).value();
    std::vector<Fingerprint> prints;
    for (const std::string_view key : {absent, std::string_view(""), std::string_view("k")})
      for (const std::string_view body : {absent, std::string_view(""), std::string_view("b")}) {
        Delivery delivery;
        delivery.key = rule.kind == ContentRule::Kind::json ? "same" : key;
        delivery.body = body;
        prints.push_back(fingerprint_of(delivery, rule));
      }
    for (std::size_t a = 0; a < prints.size(); ++a)
      for (std::size_t b = 0; b < prints.size(); ++b) {
        const bool same = rule.kind == ContentRule::Kind::json ? a % 3 == b % 3 : a == b;
        EXPECT_EQ(contradicts(prints[a], prints[b]), !same) << text << " " << a << " " << b;
        if (rule.kind == ContentRule::Kind::fields) continue;
        // As an earlier version stored it.
        const Fingerprint old{
            rule.kind == ContentRule::Kind::json ? std::uint8_t{2} : std::uint8_t{1},
            prints[a].digest};
        EXPECT_FALSE(contradicts(old, prints[a])) << text << " " << a;
        if (prints[a].digest != prints[b].digest) {
          EXPECT_TRUE(contradicts(old, prints[b])) << text << " " << a << " " << b;
        }
      }
  }
  const ContentRule header = ContentRule::parse("fields:header:x").value();
  const HeaderView with_empty{"x", ""};
  const HeaderView with_none{"x", absent};
  Delivery empty, none;
  empty.headers = std::span(&with_empty, 1);
  none.headers = std::span(&with_none, 1);
  EXPECT_TRUE(contradicts(fingerprint_of(empty, header), fingerprint_of(none, header)));
}

TEST(Fingerprint, of_different_rules_is_never_compared) {
  std::vector<int> versions;
  for (const char* rule : {"json", "everything", "fields:/a", "fields:/b", "fields:/a,/b"})
    versions.push_back(fingerprint_by(rule, "{}").version);
  std::sort(versions.begin(), versions.end());
  EXPECT_EQ(std::adjacent_find(versions.begin(), versions.end()), versions.end());
  EXPECT_EQ(fingerprint_by("none", "{}").version, 0);
}

}  // namespace
}  // namespace once
