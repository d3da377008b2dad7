// SPDX-License-Identifier: Apache-2.0
#include "operate/runner_group.h"

#include <gtest/gtest.h>
#include <once/open.h>

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "testing/script_source.h"

namespace once::operate {
namespace {

class RunnerGroupTest : public ::testing::Test {
 protected:
  struct Parts {
    testing::ScriptSource source;
  };

  // A pipeline that notes the ids it is given, and fails at the id "bad".
  Member member(const std::string& name, const std::vector<std::string>& ids, bool stop_at_end) {
    const auto open = [this, name, ids, stop_at_end](Patience&) -> Result<OpenedJob> {
      ++opened_[name];
      const auto parts = std::make_shared<Parts>();
      for (const std::string& id : ids)
        parts->source.add(name + "/0", {.id = id, .body = "b", .timestamp_ms = 1000});
      parts->source.announce(name + "/0");
      Job job{
          .name = "test",
          .source = parts->source,
          .store = *store_,
          .handler = each([this, name](const Delivery& delivery, Transaction&) -> Result<Outcome> {
            if (delivery.id == "bad") return fail(Remedy::stop, "broken", "it is bad");
            const std::scoped_lock lock(mutex_);
            done_[name].emplace_back(delivery.id);
            return applied();
          }),
          .options = {}};
      job.options.scope = name;
      job.options.id = IdRule{};
      job.options.stop_at_end = stop_at_end;
      job.options.batch_wait_ms = 1;
      return OpenedJob{parts, std::move(job)};
    };
    return {.name = name, .open = open, .observer = [](const Event&) {}};
  }

  std::vector<std::string> done(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    return done_[name];
  }
  void wait_for(const std::string& name, std::size_t count) {
    while (done(name).size() < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::unique_ptr<Store> store_ = open_memory_store().value();
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> done_;  // guarded by mutex_
  std::map<std::string, int> opened_;
};

TEST_F(RunnerGroupTest, ends_when_all_have_come_to_their_ends) {
  const auto group =
      RunnerGroup::open({member("a", {"1", "2"}, true), member("b", {"1", "3"}, true)}, 0).value();
  EXPECT_TRUE(group->run());
  EXPECT_EQ(done("a"), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(done("b"), (std::vector<std::string>{"1", "3"})) << "an id is one of its scope";
  const auto statistics = group->statistics();
  ASSERT_EQ(statistics.size(), 2u);
  EXPECT_EQ(statistics[1].name, "b");
  EXPECT_EQ(statistics[1].statistics.pipeline.applied, 2u);
}

TEST_F(RunnerGroupTest, one_that_ends_leaves_the_others_running_until_they_are_stopped) {
  const auto group =
      RunnerGroup::open({member("a", {"1"}, true), member("b", {"1"}, false)}, 0).value();
  Status ran = fail(Remedy::stop, "", "");
  std::thread running([&] { ran = group->run(); });
  wait_for("a", 1);
  wait_for("b", 1);
  group->stop();
  running.join();
  EXPECT_TRUE(ran);
}

TEST_F(RunnerGroupTest, one_that_fails_ends_all_and_is_named) {
  const auto group =
      RunnerGroup::open({member("a", {"1"}, false), member("b", {"1", "bad"}, false)}, 0).value();
  const Status ran = group->run();
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().tag, "broken");
  EXPECT_TRUE(ran.error().text.starts_with("pipeline \"b\": ")) << ran.error().text;
}

TEST_F(RunnerGroupTest, nothing_runs_while_one_cannot_be_opened) {
  Member broken = member("b", {}, true);
  broken.open = [](Patience&) -> Result<OpenedJob> {
    return fail(Remedy::stop, "missing", "there is no topic");
  };
  const auto group = RunnerGroup::open({member("a", {"1"}, true), std::move(broken)}, 0);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().text, "pipeline \"b\": there is no topic");
  EXPECT_TRUE(done("a").empty());
}

}  // namespace
}  // namespace once::operate
