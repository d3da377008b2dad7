// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/once.h>

#include <string>
#include <string_view>
#include <vector>

#include "testing/live_server.h"
#include "wire/mqtt/adapter.h"

namespace once::testing {

// What tests do with a Mosquitto beside what Once does.

inline Result<std::unique_ptr<Source>> mqtt_source(const std::string& url) {
  return mqtt::adapter().source(url);
}
inline Result<std::unique_ptr<Sink>> mqtt_sink(const std::string& url) {
  return mqtt::adapter().sink(url);
}

// Makes the session of a source and its subscription, so that the broker keeps what is sent.
inline void subscribe_mqtt(const std::string& url) {
  const auto source = mqtt_source(url);
  ASSERT_TRUE(source) << source.error().text;
  for (int i = 0; i < 200; ++i) {
    const auto batch = (*source)->poll(1, 50);
    ASSERT_TRUE(batch) << batch.error().text;
    if (batch->drained || !batch->deliveries.empty()) return;
  }
  ADD_FAILURE() << "the broker does not answer";
}

inline void send_mqtt(const std::string& url, const std::vector<Message>& messages) {
  const auto sink = mqtt_sink(url);
  ASSERT_TRUE(sink) << sink.error().text;
  const auto receipt = (*sink)->append(0, {}, messages);
  ASSERT_TRUE(receipt) << receipt.error().text;
  EXPECT_TRUE(receipt->refused.empty()) << receipt->refused.front().why.text;
}

}  // namespace once::testing
