// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <once/sink.h>

#include <array>
#include <string>

namespace once {
namespace {

Message with_key(std::string key) {
  Message message;
  message.key = std::move(key);
  return message;
}

TEST(Partition, is_that_of_kafkas_default_partitioner) {
  // From Kafka's own test of murmur2: the hashes of these keys, with the sign removed.
  const std::array<std::pair<const char*, std::uint32_t>, 5> known{{
      {"21", static_cast<std::uint32_t>(-973932308)},
      {"foobar", static_cast<std::uint32_t>(-790332482)},
      {"a-little-bit-long-string", static_cast<std::uint32_t>(-985981536)},
      {"a-little-bit-longer-string", static_cast<std::uint32_t>(-1486304829)},
      {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", static_cast<std::uint32_t>(-58897971)},
  }};
  for (const auto& [key, hash] : known)
    EXPECT_EQ(partition_of(with_key(key), 1000), (hash & 0x7fffffff) % 1000) << key;
}

TEST(Partition, follows_the_key_then_the_id_then_the_body) {
  Message message{"id", "key", "body", {}, 0};
  const std::uint32_t by_key = partition_of(message, 1000);
  message.id = "another";
  EXPECT_EQ(partition_of(message, 1000), by_key);
  message.key.reset();
  const std::uint32_t by_id = partition_of(message, 1000);
  message.body = "another";
  EXPECT_EQ(partition_of(message, 1000), by_id);
  EXPECT_EQ(by_id, partition_of(with_key("another"), 1000));
  message.id.clear();
  EXPECT_EQ(partition_of(message, 1000), partition_of(with_key("another"), 1000));
}

TEST(Partition, is_always_one_of_those_there_are) {
  for (std::uint32_t count : {0u, 1u, 2u, 3u, 7u})
    for (int i = 0; i < 100; ++i)
      EXPECT_LT(partition_of(with_key(std::to_string(i)), count), std::max(count, 1u));
}

TEST(Partition, spreads_keys_evenly) {
  std::array<int, 8> counts{};
  for (int i = 0; i < 8000; ++i) ++counts[partition_of(with_key("order-" + std::to_string(i)), 8)];
  for (const int count : counts) {
    EXPECT_GT(count, 800);
    EXPECT_LT(count, 1200);
  }
}

}  // namespace
}  // namespace once
