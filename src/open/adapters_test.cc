// SPDX-License-Identifier: Apache-2.0
#include "open/adapters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "open/look.h"

namespace once {
namespace {

TEST(Adapters, scheme_belongs_to_one_adapter) {
  std::set<std::string_view> seen;
  for (const Adapter* adapter : adapters()) {
    EXPECT_FALSE(adapter->schemes.empty());
    for (const std::string_view scheme : adapter->schemes)
      EXPECT_TRUE(seen.insert(scheme).second) << scheme;
  }
}

TEST(Adapters, what_belongs_together_is_there_together) {
  for (const Adapter* adapter : adapters()) {
    const std::string_view scheme = adapter->schemes.front();
    EXPECT_TRUE(adapter->source || adapter->sink || adapter->store) << scheme;
    EXPECT_EQ(adapter->store_state == nullptr, adapter->store_to_look == nullptr) << scheme;
    // A destination that is missing must be told from one that is away.
    EXPECT_TRUE(adapter->sink == nullptr || adapter->topics != nullptr) << scheme;
    EXPECT_TRUE(adapter->source_to_look == nullptr || adapter->source != nullptr) << scheme;
    // Otherwise a pipeline could read what it writes, and nobody would see it.
    const bool has_topics = adapter->source != nullptr || adapter->sink != nullptr;
    EXPECT_EQ(has_topics, adapter->topic_address != nullptr) << scheme;
    // Two processes that read with a group are members of it.
    EXPECT_TRUE(adapter->group_parameter.empty() || adapter->shares_out != nullptr) << scheme;
    const auto& reader = adapter->reader_parameters;
    EXPECT_TRUE(adapter->group_parameter.empty() ||
                std::find(reader.begin(), reader.end(), adapter->group_parameter) != reader.end())
        << scheme << ": who only looks would join the group";
    const bool has_language = adapter->language.sql || adapter->language.redis_commands;
    EXPECT_TRUE(adapter->store != nullptr || !has_language) << scheme;
  }
}

// The literals of schemes belong into the folders of the adapters: everything else asks the table.
TEST(Adapters, are_asked_what_is_special_about_their_urls) {
  EXPECT_TRUE(is_for_one_process("file:data/a"));
  EXPECT_FALSE(is_for_one_process("sea://h/a"));
  EXPECT_EQ(store_language_of("sqlite:a.db").value().sql, SqlDialect::sqlite);
  EXPECT_FALSE(store_language_of("memory:").value().sql);
  EXPECT_EQ(store_language_of("file:a").error().tag, "url");
  const std::string topic = topic_with_one_writer("file:data/a");
  EXPECT_TRUE(topic.starts_with('/') && topic.ends_with("/data/a")) << topic;
  EXPECT_EQ(topic_with_one_writer("sqlite:a.db"), "");
  EXPECT_TRUE(missing_file_of("sqlite:none/a.db").ends_with("/none/a.db"));
  EXPECT_EQ(missing_file_of("file:none/a"), "");
#ifdef ONCE_WITH_KAFKA
  EXPECT_TRUE(is_for_one_process("kafka://h/a"));
  EXPECT_FALSE(is_for_one_process("kafka://h/a?group=x"));
  EXPECT_EQ(topic_with_one_writer("kafka://h/a"), "");
#endif
}

TEST(Adapters, one_that_cannot_do_it_is_not_found) {
  const auto adapter =
      adapter_of("sqlite:a", "sink", [](const Adapter& one) { return one.sink != nullptr; });
  ASSERT_FALSE(adapter);
  EXPECT_EQ(adapter.error().tag, "url");
  EXPECT_NE(adapter.error().text.find("known: file:"), std::string::npos) << adapter.error().text;
}

}  // namespace
}  // namespace once
