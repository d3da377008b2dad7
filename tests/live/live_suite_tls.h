// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "live/live_suite.h"

namespace once::testing {

// A server with a certificate of its own.
class Encrypted : public LiveSuite {
 protected:
  std::string trusting(const std::string& authority, const std::string& url) {
    return url + fmt::format(fmt::runtime(GetParam().verify), server().path("tls/" + authority));
  }

  // Refused for good, with a reason that helps and without the password.
  void expect_refused(const std::string& url, const std::string& reason) {
    const auto refused = GetParam().open(url);
    ASSERT_FALSE(refused) << url;
    EXPECT_EQ(refused.error().remedy, Remedy::stop) << refused.error().text;
    EXPECT_EQ(refused.error().tag, "denied") << refused.error().text;
    EXPECT_NE(refused.error().text.find(reason), std::string::npos) << refused.error().text;
    EXPECT_EQ(refused.error().text.find("once-test-secret"), std::string::npos);
  }
};

TEST_P(Encrypted, a_server_is_believed_if_its_certificate_is_vouched_for) {
  LiveServer encrypted(server().kind(), {.tls = true});
  ASSERT_EQ(encrypted.missing(), "");
  server_ = &encrypted;
  clear_effects();
  constexpr int count = 200;
  send(0, count);
  send(0, count, "shop again");
  // Through a proxy that breaks connections, so that many are made.
  ChaosProxy proxy(server().port());
  auto store = open(trusting("ca.pem", server().url_at(proxy.port())));
  ASSERT_NE(store, nullptr);
  const auto work = [&](const Delivery& delivery, SqlTransaction& sql) -> Result<Outcome> {
    ONCE_TRY(add_effect(sql, delivery.id));
    if (delivery.offset % 50 == 25 && delivery.attempt == 1) {
      const Rows rows = ONCE_TRY(sql.query(GetParam().is_encrypted));
      EXPECT_EQ(rows.size(), 1u) << "the connection is not encrypted";
    }
    return applied();
  };
  std::atomic<bool> done = false;
  std::thread breaker([&] {
    for (int pause_ms = 60; !done; pause_ms += 20) {
      std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
      proxy.cut_all();
    }
  });
  const Status consumed = consume(*store, options(), each(work));
  done = true;
  breaker.join();
  ASSERT_TRUE(consumed) << consumed.error().text;
  EXPECT_EQ(effects(), ids_to(count));

  expect_refused(trusting("other_ca.pem", server().url()), "certificate");
  expect_refused(trusting("not_there.pem", server().url()), "certificate");
  // The right certificate of another name: this one is not in it.
  std::string misnamed = server().url();
  misnamed.replace(misnamed.find("127.0.0.1"), 9, GetParam().other_name);
  expect_refused(trusting("ca.pem", misnamed), "certificate");
}

TEST_P(Encrypted, a_server_that_cannot_encrypt_is_refused_if_that_was_asked_for) {
  expect_refused(server().url() + GetParam().require, "SSL");
}

}  // namespace once::testing
