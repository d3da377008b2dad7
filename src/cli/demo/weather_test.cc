// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/weather.h"

#include <gtest/gtest.h>
#include <once/log.h>
#include <once/producer.h>

#include <map>
#include <string>
#include <vector>

#include "testing/scratch.h"

namespace once::cli {
namespace {

using testing::Scratch;

std::vector<std::string> bodies_in(Source& source) {
  std::vector<std::string> bodies;
  while (true) {
    const Batch batch = source.poll(7, 10).value();
    if (batch.event == Batch::Event::end) return bodies;
    if (batch.event == Batch::Event::assigned) {
      EXPECT_TRUE(source.replay()->seek(batch.partition, -1));
    }
    for (const Delivery& delivery : batch.deliveries) bodies.emplace_back(delivery.body);
    EXPECT_TRUE(source.ack(batch.deliveries));
  }
}

class Weather : public ::testing::Test {
 protected:
  void SetUp() override {
    TopicOptions options;
    options.gaps = GapPolicy::hold;
    ASSERT_TRUE(create_topic(scratch_.directory(), "t", options));
  }
  // Sends the numbers below `count` in batches of ten; answers how many duplicates were told.
  std::uint64_t send(int count, BadNetwork& network) {
    auto producer = Producer::open(network, {.name = "p"}).value();
    std::uint64_t duplicates = 0;
    for (int i = 0; i < count; i += 10) {
      std::vector<Message> messages(10);
      for (int k = 0; k < 10; ++k)
        messages[static_cast<std::size_t>(k)].body = std::to_string(i + k);
      duplicates += producer->send(messages).value().duplicates;
    }
    return duplicates;
  }

  Scratch scratch_;
};

TEST_F(Weather, network_doubles_and_reorders_and_the_log_holds_each_once_and_in_order) {
  auto sink = open_log_sink(scratch_.directory(), "t").value();
  BadNetwork network(*sink, 5);
  EXPECT_GT(send(500, network), 0u) << "answers were lost";
  EXPECT_GT(network.overtakings(), 0);
  auto source = open_log_source(scratch_.directory(), "t", {.stop_at_end = true}).value();
  const auto bodies = bodies_in(*source);
  ASSERT_EQ(bodies.size(), 500u);
  for (std::size_t i = 0; i < bodies.size(); ++i) EXPECT_EQ(bodies[i], std::to_string(i));
}

TEST_F(Weather, source_whose_acks_are_lost_delivers_again_and_loses_nothing) {
  {
    auto sink = open_log_sink(scratch_.directory(), "t").value();
    BadNetwork network(*sink, 5);
    send(1000, network);
  }
  auto log = open_log_source(scratch_.directory(), "t", {.stop_at_end = true}).value();
  Journal journal = Journal::open(scratch_.directory(), "reader", 1).value();
  ForgetfulSource source(*log, journal, 3);
  const auto bodies = bodies_in(source);
  std::map<std::string, int> counts;
  for (const std::string& body : bodies) ++counts[body];
  EXPECT_EQ(counts.size(), 1000u);
  EXPECT_GT(bodies.size(), 1000u) << "some came again";

  std::size_t in_journal = 0;
  const auto pages = read_journals(scratch_.directory()).value();
  for (const JournalPage& page : pages) {
    EXPECT_EQ(page.role, "reader");
    for (const Json& line : page.lines) in_journal += line["offsets"].size();
  }
  EXPECT_EQ(in_journal, bodies.size()) << "every delivery is in the journal";
}

TEST_F(Weather, journal_of_a_killed_process_is_read_up_to_its_last_whole_line) {
  ASSERT_TRUE(replace_file(system_files(), scratch_.path("journal/naive-orders-12.jsonl"),
                           "{\"a\":1}\n{\"a\":2}\n{\"a\""));
  const auto pages = read_journals(scratch_.directory()).value();
  ASSERT_EQ(pages.size(), 1u);
  EXPECT_EQ(pages[0].role, "naive-orders");
  EXPECT_EQ(pages[0].lines.size(), 2u);
}

}  // namespace
}  // namespace once::cli
