// SPDX-License-Identifier: Apache-2.0
#include "operate/runner.h"

#include <gtest/gtest.h>
#include <once/log.h>
#include <once/open.h>

#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "audit/read_to_end.h"
#include "model/message_view.h"
#include "testing/scratch.h"
#include "testing/script_source.h"

namespace once::operate {
namespace {

class RunnerTest : public ::testing::Test {
 protected:
  RunnerTest() {
    EXPECT_TRUE(create_topic(directory_.path("log"), "copy", {}));
    for (int i = 0; i < count_; ++i)
      source_.add("in/0", {.id = std::to_string(i), .body = "b", .timestamp_ms = 1000});
    source_.announce("in/0");
  }

  std::string topic() const { return "file:" + directory_.path("log/copy"); }

  Job job(Source& source) {
    Job made{.name = "copy",
             .source = source,
             .store = *store_,
             .handler = each([](const Delivery& delivery, Transaction& state) -> Result<Outcome> {
               ONCE_TRY(state.enqueue("run/copy/to", message_of(delivery)));
               return applied();
             }),
             .options = {},
             .destinations = {{topic(), "run/copy/to", "the test"}},
             .relay_name = "copy"};
    made.options.scope = "copy";
    made.options.id = IdRule{};
    made.options.stop_at_end = true;
    made.options.batch_wait_ms = 1;
    made.options.observer = [this](const Event& event) {
      const std::scoped_lock lock(mutex_);
      told_.push_back(event);
    };
    return made;
  }

  Result<std::unique_ptr<Runner>> make(Job made) {
    Patience none(0, {});
    return Runner::make(std::move(made), none);
  }

  std::vector<std::string> ids_sent() const {
    std::vector<std::string> ids;
    EXPECT_TRUE(audit::read_to_end(topic(), [&](const Delivery& delivery) -> Status {
      ids.emplace_back(delivery.id);
      return {};
    }));
    return ids;
  }

  bool was_told(const std::string& text) {
    const std::scoped_lock lock(mutex_);
    for (const Event& event : told_)
      if (event.text.find(text) != std::string::npos) return true;
    return false;
  }

  const int count_ = 20;
  testing::Scratch directory_;
  std::unique_ptr<Store> store_ = open_memory_store().value();
  testing::ScriptSource source_;
  std::mutex mutex_;
  std::vector<Event> told_;
};

TEST_F(RunnerTest, runs_to_the_end_and_sends_what_was_emitted_once_and_in_order) {
  auto runner = make(job(source_));
  ASSERT_TRUE(runner) << runner.error().text;
  const Status done = (*runner)->run();
  ASSERT_TRUE(done) << done.error().text;
  std::vector<std::string> expected;
  for (int i = 0; i < count_; ++i) expected.push_back(std::to_string(i));
  EXPECT_EQ(ids_sent(), expected);
  const Json json = json_of((*runner)->statistics());
  EXPECT_EQ(json["applied"], count_);
  EXPECT_EQ(json["emitted"], count_);
  EXPECT_EQ(json["emits_parked"], 0);
  EXPECT_EQ(json.size(), pipeline_figures().size() + relay_figures().size());
}

TEST_F(RunnerTest, stands_by_while_another_has_the_turn_and_can_be_stopped_there) {
  Job first = job(source_);
  first.options.stop_at_end = false;
  first.takes_turns = true;
  auto running = make(std::move(first));
  ASSERT_TRUE(running) << running.error().text;
  std::thread elsewhere([&] { EXPECT_TRUE((*running)->run()); });
  while ((*running)->statistics().pipeline.applied == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));

  testing::ScriptSource other;
  Job second = job(other);
  second.takes_turns = true;
  auto waiting = make(std::move(second));
  ASSERT_TRUE(waiting) << waiting.error().text;
  std::thread standing_by([&] { EXPECT_TRUE((*waiting)->run()); });
  while (!was_told("standing by")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  (*waiting)->stop();
  standing_by.join();
  EXPECT_EQ((*waiting)->statistics().pipeline.delivered, 0U);
  (*running)->stop();
  elsewhere.join();
}

TEST_F(RunnerTest, says_that_it_goes_on_when_the_other_has_ended) {
  Job first = job(source_);
  first.options.stop_at_end = false;
  first.takes_turns = true;
  auto running = make(std::move(first)).value();
  std::thread elsewhere([&] { EXPECT_TRUE(running->run()); });
  while (running->statistics().pipeline.applied == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));

  testing::ScriptSource other;
  Job second = job(other);
  second.takes_turns = true;
  auto waiting = make(std::move(second)).value();
  std::thread standing_by([&] { EXPECT_TRUE(waiting->run()); });
  while (!was_told("standing by")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running->stop();
  elsewhere.join();
  standing_by.join();
  EXPECT_TRUE(was_told("this process runs the scope \"copy\" now"));
}

TEST_F(RunnerTest, refuses_a_job_that_leaves_a_destination_with_rows_behind) {
  {
    Job first = job(source_);
    auto pipeline = Pipeline::make(first.source, first.store, first.handler, first.options);
    ASSERT_TRUE(pipeline && (*pipeline)->run());  // nobody sends
  }
  Job renamed = job(source_);
  renamed.destinations = {{topic(), "run/copy/elsewhere", "the test"}};
  const auto refused = make(std::move(renamed));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "config");
  EXPECT_NE(refused.error().text.find("\"to\""), std::string::npos) << refused.error().text;
}

TEST_F(RunnerTest, says_what_asks_for_a_destination_that_is_not_there) {
  Job nowhere = job(source_);
  nowhere.destinations = {{topic() + "-not", "run/copy/to", "points.toml:14:1"}};
  const auto refused = make(std::move(nowhere));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().text.starts_with("points.toml:14:1: ")) << refused.error().text;
}

}  // namespace
}  // namespace once::operate
