// SPDX-License-Identifier: Apache-2.0
// Pulsar with certificates and tokens, on a real broker.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/once.h>

#include <fstream>
#include <string>

#include "streams/pulsar_broker.h"
#include "testing/scratch.h"

namespace once::testing {
namespace {

LiveServer& broker() {
  static LiveServer encrypted("pulsar", {.tls = true});
  return encrypted;
}

std::string token() {
  const std::string url = broker().url();
  const auto begin = url.find("token:") + 6;
  return url.substr(begin, url.find('@') - begin);
}

std::string trusted(const std::string& url, const std::string& authority = "ca.pem") {
  return fmt::format("{}&ca={}", url, broker().path("tls/" + authority));
}

std::string orders() {
  static const std::string url = pulsar_topic_at_url(trusted(pulsar_url(broker(), "orders")), 1);
  return url;
}

// Refused for good, with a reason that helps and without the token.
void expect_refused(const std::string& url, const std::string& reason,
                    const std::string& secret = token()) {
  const auto source = open_pulsar_source(url);
  const auto sink = open_pulsar_sink(url);
  ASSERT_FALSE(source);
  ASSERT_FALSE(sink);
  for (const Error& error : {source.error(), sink.error()}) {
    EXPECT_EQ(error.remedy, Remedy::stop) << error.text;
    EXPECT_EQ(error.tag, "denied") << error.text;
    EXPECT_NE(error.text.find(reason), std::string::npos) << error.text;
    EXPECT_EQ(error.text.find(secret), std::string::npos) << error.text;
  }
}

std::vector<std::string> read(const std::string& url) {
  auto source = open_pulsar_source(url + "&end=stop").value();
  std::vector<std::string> ids;
  while (true) {
    const Batch batch = source->poll(100, 100).value();
    if (batch.event == Batch::Event::end) return ids;
    if (batch.event == Batch::Event::assigned) {
      EXPECT_TRUE(source->replay()->seek(batch.partition, -1));
    }
    for (const Delivery& delivery : batch.deliveries) ids.emplace_back(delivery.id);
  }
}

TEST(PulsarTls, messages_go_there_and_back_and_large_ones_too) {
  auto sink = open_pulsar_sink(orders()).value();
  const Stamp stamp = sink->producers()->enter(0, "shop").value();
  std::vector<Message> messages;
  std::vector<std::string> wanted;
  for (int i = 0; i < 50; ++i) {
    messages.push_back(
        {.id = fmt::format("order {}", i), .body = std::string(i % 10 == 9 ? 3'000'000 : 10, 'x')});
    wanted.push_back(messages.back().id);
  }
  const auto sent = sink->append(0, stamp, messages);
  ASSERT_TRUE(sent) << sent.error().text;
  EXPECT_EQ(read(orders()), wanted);
  EXPECT_EQ(read(orders() + "&subscription=points"), wanted);
}

TEST(PulsarTls, a_token_may_be_in_a_file) {
  const Scratch scratch;
  std::ofstream(scratch.path("token")) << token() << "\n";
  std::string url = orders();
  url.erase(url.find("token:"), token().size() + 7);
  const auto source = open_pulsar_source(url + "&token_file=" + scratch.path("token"));
  EXPECT_TRUE(source) << source.error().text;
}

TEST(PulsarTls, a_certificate_nobody_vouches_for_is_refused) {
  const std::string url = pulsar_url(broker(), "orders");
  expect_refused(trusted(url, "other_ca.pem"), "its certificate is not accepted");
  expect_refused(url, "its certificate is not accepted");
  expect_refused(trusted(url, "nowhere.pem"), "nowhere.pem");
}

TEST(PulsarTls, a_wrong_token_or_none_is_refused) {
  std::string url = orders();
  const std::string wrong = token().substr(0, token().size() - 4) + "AAAA";
  url.replace(url.find(token()), token().size(), wrong);
  expect_refused(url, "check the token", wrong);
  url.erase(url.find("token:"), wrong.size() + 7);
  expect_refused(url, "check the token");
}

TEST(PulsarTls, who_speaks_plainly_to_a_port_with_tls_is_told) {
  std::string url = orders();
  url.erase(url.find("+ssl"), 4);
  url.erase(url.find("&ca="));
  const auto source = open_pulsar_source(url);
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().remedy, Remedy::retry);
  EXPECT_EQ(source.error().text.find(token()), std::string::npos);
  EXPECT_NE(source.error().text.find("pulsar+ssl://"), std::string::npos) << source.error().text;
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::broker());
}
