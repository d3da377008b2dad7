// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/envelope.h"

#include <gtest/gtest.h>

#include "wire/kafka/producer_state.h"

namespace once::kafka {
namespace {

TEST(KafkaEnvelope, a_stamp_is_read_as_it_was_written) {
  for (const Stamp& stamp : {Stamp{1, 0, 0}, Stamp{~0ULL, ~0U, ~0ULL}, Stamp{0xabc, 7, 1'000'000}})
    EXPECT_EQ(decode_stamp(encode_stamp(stamp)), stamp);
  EXPECT_EQ(encode_stamp({0xabc, 7, 12}), "abc/7/12");
}

TEST(KafkaEnvelope, what_is_no_stamp_is_not_taken_for_one) {
  for (const char* text : {"", "/", "a/1", "a/1/", "a/1/2/", "a/1/2/3", "g/1/2", "a/-1/2", "a/1/ 2",
                           "a/4294967296/1", "fffffffffffffffff/1/1"})
    EXPECT_FALSE(decode_stamp(text)) << text;
}

TEST(KafkaProducerState, is_read_as_it_was_written) {
  const ProducerState state{
      .producer = 0xabc, .epoch = 3, .next_sequence = 12, .last_sequence = 10, .last_offset = 77};
  EXPECT_EQ(ProducerState::read(12, state.metadata()), state);
}

TEST(KafkaProducerState, what_others_have_committed_is_no_state) {
  for (const char* text : {"", "once1", "once1 ", "once1 a/1/2", "once2 a/1/2 3", "once1 a/1/2 x"})
    EXPECT_FALSE(ProducerState::read(5, text)) << text;
  EXPECT_FALSE(ProducerState::read(-1001, "once1 a/1/2 3"));
}

TEST(KafkaProducerState, only_the_place_of_the_last_batch_is_known) {
  const ProducerState state{
      .producer = 1, .epoch = 1, .next_sequence = 12, .last_sequence = 10, .last_offset = 77};
  EXPECT_EQ(state.offset_of(10), 77);
  EXPECT_EQ(state.offset_of(11), -1);
  EXPECT_EQ(state.offset_of(9), -1);
  EXPECT_EQ(ProducerState{}.offset_of(0), -1);
}

}  // namespace
}  // namespace once::kafka
