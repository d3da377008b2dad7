// SPDX-License-Identifier: Apache-2.0
// The suites of sources and sinks against a real Mosquitto.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <thread>

#include "streams/mqtt_broker.h"
#include "streams/queue_suite.h"
#include "streams/sink_suite.h"
#include "testing/chaos_proxy.h"

namespace once::testing {
namespace {

LiveServer& server() {
  static LiveServer mosquitto("mosquitto");
  return mosquitto;
}

ChaosProxy& proxy() {
  static ChaosProxy made(server().port());
  return made;
}

std::string new_topic() {
  static int count = 0;
  return fmt::format("orders/{}", ++count);
}

// A source that gives its name back when it goes: two that are there at once are two clients.
class NamedSource final : public Source {
 public:
  NamedSource(std::unique_ptr<Source> source, std::set<int>& names, int name)
      : source_(std::move(source)), names_(names), name_(name) {}
  ~NamedSource() override { names_.erase(name_); }
  SourceTraits traits() const override { return source_->traits(); }
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override {
    return source_->poll(count_max, wait_ms);
  }
  Status ack(std::span<const Delivery> done) override { return source_->ack(done); }
  Status release(std::span<const Delivery> undone, std::int64_t delay_ms) override {
    return source_->release(undone, delay_ms);
  }

 private:
  const std::unique_ptr<Source> source_;
  std::set<int>& names_;
  const int name_;
};

std::string named(const std::string& url, int name) {
  const std::string topic = url.substr(url.find("orders/"), url.find('?') - url.find("orders/"));
  return fmt::format("{}&client={}-{}", url, topic, name);
}

Result<std::unique_ptr<Source>> open_named(const std::string& url) {
  static std::map<std::string, std::set<int>> names;
  std::set<int>& taken = names[url];
  int name = 1;
  while (taken.contains(name)) ++name;
  auto source = mqtt_source(named(url, name));
  if (!source) return source;
  taken.insert(name);
  return std::make_unique<NamedSource>(std::move(*source), taken, name);
}

QueueUnderTest queue_with(const std::string& name, const std::string& parameters) {
  QueueUnderTest queue;
  queue.name = name;
  queue.new_queue = [parameters] {
    const std::string topic = new_topic();
    const std::string url = fmt::format("{}/{}?headers=own&share=workers&{}",
                                        server().url_at(proxy().port()), topic, parameters);
    subscribe_mqtt(named(url, 1));
    return url;
  };
  queue.send = [parameters](const std::string& url, const std::vector<Message>& messages) {
    const std::string topic = url.substr(url.find("orders/"), url.find('?') - url.find("orders/"));
    send_mqtt(fmt::format("{}/{}?qos={}", server().url(), topic,
                          parameters.find("qos=2") != std::string::npos ? 2 : 1),
              messages);
  };
  queue.open = open_named;
  queue.cut = [](Source&) { proxy().cut_all_behind_clients(); };
  queue.let_pass_ms = [](std::int64_t ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  };
  queue.counts_attempts = true;
  queue.acks_in_order = true;
  return queue;
}

INSTANTIATE_TEST_SUITE_P(Mosquitto, QueueSuite,
                         ::testing::Values(queue_with("qos_1", "qos=1"),
                                           queue_with("qos_2", "qos=2&prefetch=30")),
                         [](const auto& queue) { return queue.param.name; });

StreamUnderTest sink_with(const std::string& name, int qos) {
  const auto source_of = [qos](const std::string& url) {
    const std::string topic = url.substr(url.find("orders/"), url.find('?') - url.find("orders/"));
    return fmt::format("{}/{}?headers=own&end=stop&client={}&qos={}", server().url(), topic, topic,
                       qos);
  };
  StreamUnderTest stream;
  stream.name = name;
  stream.new_topic = [qos, source_of](std::uint32_t) {
    const std::string url = fmt::format("{}/{}?qos={}", server().url(), new_topic(), qos);
    const auto source = mqtt_source(source_of(url)).value();
    while (source->poll(1, 50)->event != Batch::Event::end) continue;
    return url;
  };
  stream.open_sink = mqtt_sink;
  stream.open_source = [source_of](const std::string& url, bool) {
    return mqtt_source(source_of(url));
  };
  stream.tells_offsets = false;
  stream.partitions_max = 1;
  return stream;
}

INSTANTIATE_TEST_SUITE_P(Mosquitto, SinkSuite,
                         ::testing::Values(sink_with("qos_1", 1), sink_with("qos_2", 2)),
                         [](const auto& stream) { return stream.param.name; });

// No sink of MQTT recognises resends by stamp.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProducersSuite);

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
