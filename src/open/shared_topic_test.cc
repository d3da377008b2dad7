// SPDX-License-Identifier: Apache-2.0
#include "open/shared_topic.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace once {
namespace {

std::string text_of(const std::optional<SharedTopic>& shared) {
  if (!shared) return "none";
  return shared->name + (shared->is_certain ? "" : "?");
}
// The same in both directions.
std::string compared(const std::string& one, const std::string& other) {
  const std::string text = text_of(shared_topic(one, other));
  EXPECT_EQ(text, text_of(shared_topic(other, one))) << one << " and " << other;
  return text;
}

TEST(SharedTopic, brokers_are_compared_with_their_usual_port_and_in_any_order) {
  EXPECT_EQ(compared("kafka://h/orders", "kafka://h:9092/orders"), "orders");
  EXPECT_EQ(compared("kafka://H/orders?group=x", "kafka://me:pw@h/orders?acks=all"), "orders");
  EXPECT_EQ(compared("kafka://a,b:9093/orders", "kafka://c,b:9093/orders"), "orders");
  EXPECT_EQ(compared("kafka://[::1]/orders", "kafka://[::1]:9092/orders"), "orders");
  EXPECT_EQ(compared("kafka://h/orders", "kafka://h/order"), "none");
}

TEST(SharedTopic, each_of_several_topics_is_compared) {
  EXPECT_EQ(compared("kafka://h/a,b", "kafka://h/b"), "b");
  EXPECT_EQ(compared("kafka://h/a,b", "kafka://h/c,b"), "b");
  EXPECT_EQ(compared("kafka://h/a,b", "kafka://h/c"), "none");
  EXPECT_EQ(compared("file:data/a,b?end=stop", "file:data/b").substr(0, 1), "/");
  EXPECT_EQ(compared("file:data,x/a", "file:data/a"), "none") << "only topics are a list";
}

TEST(SharedTopic, brokers_of_other_names_may_be_of_one_cluster) {
  EXPECT_EQ(compared("kafka://h/orders", "kafka://h:9093/orders"), "orders?");
  EXPECT_EQ(compared("kafka://a/x,orders", "kafka://b/orders"), "orders?");
  EXPECT_EQ(compared("kafka://localhost/orders", "kafka://127.0.0.1/orders"), "orders?");
  EXPECT_EQ(compared("kafka://a/orders", "kafka://b/refunds"), "none");
}

TEST(SharedTopic, a_path_is_the_same_relative_absolute_and_through_a_link) {
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(compared("file:data/a", "file:" + (here / "data/a").string()), here / "data/a");
  EXPECT_EQ(compared("file:a", "file://" + (here / "x/../a").string()), here / "a");
  EXPECT_EQ(compared("file:data/a", "file:data/b"), "none");
  const auto scratch =
      std::filesystem::temp_directory_path() / ("once-address-" + std::to_string(::getpid()));
  std::filesystem::create_directories(scratch / "real");
  std::filesystem::create_symlink(scratch / "real", scratch / "link");
  const auto real = std::filesystem::canonical(scratch / "real") / "a";
  EXPECT_EQ(compared("file:" + (scratch / "link/a").string(), "file:" + real.string()), real);
  std::filesystem::remove_all(scratch);
}

TEST(SharedTopic, what_is_no_topic_is_none) {
  EXPECT_EQ(compared("file:a", "kafka://h/a"), "none");
  EXPECT_EQ(compared("sqlite:a.db", "sqlite:a.db"), "none");
  EXPECT_EQ(compared("dead letters", "dead letters"), "none");
}

}  // namespace
}  // namespace once
