// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <once/log.h>
#include <once/open.h>

#include <string>

#include "testing/scratch.h"

namespace once {
namespace {

using testing::Scratch;

template <class T>
std::string text_of(const Result<T>& result) {
  return result ? "no error" : result.error().text;
}

TEST(Open, wrong_urls_are_errors_that_say_what_is_known) {
  EXPECT_NE(text_of(open_source("fil:a/b")).find("did you mean \"file:\""), std::string::npos);
  EXPECT_NE(text_of(open_sink("sqlite:a")).find("known: file:"), std::string::npos);
  EXPECT_NE(text_of(open_store("file:a/b")).find("known: sqlite:, memory:"), std::string::npos);
  EXPECT_NE(text_of(open_source("file:a/b?stop=1")).find("known: end"), std::string::npos);
  EXPECT_NE(text_of(open_source("file:a/b?end=never")).find("stop or wait"), std::string::npos);
  EXPECT_NE(text_of(open_sink("file:a/b?end=stop")).find("takes none"), std::string::npos);
  EXPECT_NE(text_of(open_store("sqlite:")).find("sqlite:PATH"), std::string::npos);
  EXPECT_NE(text_of(open_store("memory:x")).find("write memory:"), std::string::npos);
  EXPECT_EQ(open_source("orders").error().tag, "url");
}

TEST(Open, topic_that_does_not_exist_is_missing) {
  Scratch scratch;
  EXPECT_EQ(open_source("file:" + scratch.path("orders")).error().tag, "missing");
  EXPECT_EQ(open_sink("file:" + scratch.path("orders")).error().tag, "missing");
}

TEST(Open, file_url_opens_the_log_as_source_and_sink) {
  Scratch scratch;
  ASSERT_TRUE(create_topic(scratch.directory(), "orders", {}));
  auto sink = open_sink("file:" + scratch.path("orders"));
  ASSERT_TRUE(sink) << sink.error().text;
  EXPECT_EQ((*sink)->partitions().value(), 1u);
  auto source = open_source("file:" + scratch.path("orders") + "?end=stop");
  ASSERT_TRUE(source) << source.error().text;
  EXPECT_TRUE((*source)->traits().replayable);
  const Batch assigned = (*source)->poll(1, 0).value();
  ASSERT_EQ(assigned.event, Batch::Event::assigned);
  ASSERT_TRUE((*source)->replay()->seek(assigned.partition, -1));
  EXPECT_EQ((*source)->poll(1, 0)->event, Batch::Event::end);
}

TEST(Open, sqlite_and_memory_urls_open_stores) {
  Scratch scratch;
  auto sqlite = open_store("sqlite:" + scratch.path("shop.db"));
  ASSERT_TRUE(sqlite) << sqlite.error().text;
  EXPECT_TRUE((*sqlite)->traits().sql);
  auto memory = open_store("memory:");
  ASSERT_TRUE(memory) << memory.error().text;
  EXPECT_TRUE((*memory)->traits().key_value);
}

}  // namespace
}  // namespace once
