// SPDX-License-Identifier: Apache-2.0
// The three families of duplicates from Kafka into Redis: the ledger, the position and the effects
// are keys of one Redis. Pipelines are processes of their own (this program, with --worker) and die
// by SIGKILL.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/once.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "streams/kafka_cluster.h"
#include "testing/live_server.h"

namespace once::testing {
namespace {

constexpr std::uint32_t partitions = 3;

LiveServer& kafka() {
  static LiveServer made("kafka");
  return made;
}

LiveServer& redis() {
  static LiveServer made("redis");
  return made;
}

std::string list_of(std::string_view partition) { return fmt::format("effects/{}", partition); }

// Writes the message down once more: done twice, it shows.
Result<Outcome> write_down(const Delivery& delivery, KeyValueTransaction& transaction) {
  const std::string list = list_of(delivery.partition);
  std::string lines = ONCE_TRY(transaction.get(list)).value_or("");
  lines += fmt::format("{} {}\n", delivery.offset, delivery.id);
  ONCE_TRY(transaction.put(list, lines));
  return applied();
}

int work(const std::string& source_url, const std::string& store_url) {
  auto source = open_kafka_source(source_url);
  auto store = open_redis_store(store_url);
  if (!source || !store) return 3;
  PipelineOptions options;
  options.scope = "orders";
  options.id = IdRule::parse("carried").value();
  options.batch_count_max = 20;
  auto pipeline = Pipeline::make(**source, **store, each(write_down), options);
  if (!pipeline) return 3;
  return (*pipeline)->run() ? 0 : 1;
}

class Worker {
 public:
  Worker(std::string source, std::string store) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    std::string name = "worker";
    std::string role = "--worker";
    std::array<char*, 5> words{name.data(), role.data(), source.data(), store.data(), nullptr};
    ::execv("/proc/self/exe", words.data());
    ::_exit(127);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself, with " << WEXITSTATUS(status);
  }

 private:
  pid_t pid_ = -1;
};

class KafkaToRedis : public ::testing::Test {
 protected:
  void SetUp() override {
    topic_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    create_kafka_topic(fmt::format("127.0.0.1:{}", kafka().port()), topic_, partitions);
    sink_ = open_kafka_sink(url()).value();
    store_ = open_redis_store(store_url()).value();
  }

  std::string url() const { return kafka().url() + "/" + topic_; }
  std::string store_url() const {
    return fmt::format("{}?prefix={}&keys={}:", redis().url(), topic_, topic_);
  }
  std::unique_ptr<Worker> worker() const {
    return std::make_unique<Worker>(
        url() + "?group=g&session.timeout.ms=1500&heartbeat.interval.ms=300", store_url());
  }

  static std::string id(int number) { return fmt::format("order {:05}", number); }
  void send(const std::string& producer_name, int from, int to) {
    ProducerOptions options;
    options.name = producer_name;
    const auto producer = Producer::open(*sink_, options).value();
    std::vector<Message> messages;
    for (int i = from; i < to; ++i)
      messages.push_back({.id = id(i), .key = fmt::format("customer {}", i % 17)});
    const auto sent = producer->send(messages);
    ASSERT_TRUE(sent) << sent.error().text;
  }

  // "OFFSET ID" of every effect, in the order in which they were made.
  std::vector<std::string> effects(std::uint32_t partition) const {
    auto transaction = store_->begin("reader");
    if (!transaction) return {};
    const auto lines =
        (*transaction)->key_value()->get(list_of(fmt::format("{}/{}", topic_, partition)));
    std::vector<std::string> found;
    std::istringstream text(lines && *lines ? **lines : "");
    for (std::string line; std::getline(text, line);) found.push_back(line);
    return found;
  }
  int count() const {
    std::size_t all = 0;
    for (std::uint32_t p = 0; p < partitions; ++p) all += effects(p).size();
    return static_cast<int>(all);
  }
  void wait_for(int wanted) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (count() < wanted && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_GE(count(), wanted);
  }

  // Loss, duplication and order, id by id; a little later, for what must not come.
  void expect_each_once(int wanted) const {
    wait_for(wanted);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::map<std::string, int> seen;
    for (std::uint32_t p = 0; p < partitions; ++p) {
      std::int64_t last = -1;
      for (const std::string& effect : effects(p)) {
        const std::int64_t offset = std::stoll(effect);
        EXPECT_GT(offset, last) << effect << " took effect too late";
        last = offset;
        ++seen[effect.substr(effect.find(' ') + 1)];
      }
    }
    for (int i = 0; i < wanted; ++i) EXPECT_EQ(seen[id(i)], 1) << id(i);
    EXPECT_EQ(static_cast<int>(seen.size()), wanted);
  }

  std::string topic_;
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<Store> store_;
};

TEST_F(KafkaToRedis, sent_again_by_another_producer) {
  const auto owner = worker();
  send("shop", 0, 1000);
  send("shop after a move", 0, 1000);
  send("shop after a move", 1000, 1100);
  expect_each_once(1100);
}

TEST_F(KafkaToRedis, delivered_again_after_every_kill) {
  constexpr int all = 3000;
  send("shop", 0, all);
  int kills = 0;
  for (int before = 0; before < all && kills < 3; before = count(), ++kills) {
    const auto owner = worker();
    wait_for(before + 1);
  }
  EXPECT_EQ(kills, 3) << "it was done before it could be killed";
  const auto owner = worker();
  expect_each_once(all);
}

TEST_F(KafkaToRedis, moved_between_owners_that_come_and_die_while_redis_dies_too) {
  std::vector<std::unique_ptr<Worker>> owners;
  owners.push_back(worker());
  owners.push_back(worker());
  int sent = 0;
  for (int turn = 0; turn < 3; ++turn) {
    send("shop", sent, sent + 300);
    sent += 300;
    wait_for(sent / 2);
    if (turn == 1) {
      redis().kill();
      redis().start();
    }
    owners.erase(owners.begin());
    owners.push_back(worker());
  }
  expect_each_once(sent);
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--worker") return once::testing::work(argv[2], argv[3]);
  ::testing::InitGoogleTest(&argc, argv);
  if (!once::testing::redis().missing().empty())
    return once::testing::run_all_on(once::testing::redis());
  return once::testing::run_all_on(once::testing::kafka());
}
