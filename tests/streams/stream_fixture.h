// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/once.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "model/message_view.h"

namespace once::testing {

// A broker on its way through the suites of sources and sinks, with what it is known to do
// otherwise than others.
struct StreamUnderTest {
  std::string name;
  // Makes a topic and answers its URL.
  std::function<std::string(std::uint32_t partitions)> new_topic;
  std::function<Result<std::unique_ptr<Sink>>(const std::string& url)> open_sink;
  // Reads all partitions; a bounded one ends where they end.
  std::function<Result<std::unique_ptr<Source>>(const std::string& url, bool bounded)> open_source;

  bool tells_offsets = true;         // a receipt says where the messages are
  bool dense_offsets = true;         // each message has the offset after the one before it
  std::uint32_t partitions_max = 0;  // that a topic can have; 0: any number
  bool one_writing_process = false;  // a second sink of a topic is refused while the first is open
};

inline void PrintTo(const StreamUnderTest& stream, std::ostream* out) { *out << stream.name; }

struct Read {
  std::string partition;
  std::int64_t offset = 0;
  std::uint32_t attempt = 1;
  Message message;
  Stamp stamp;
};

inline Read read_of(const Delivery& delivery) {
  return {std::string(delivery.partition), delivery.offset, delivery.attempt, message_of(delivery),
          delivery.stamp};
}

class StreamSuite : public ::testing::TestWithParam<StreamUnderTest> {
 protected:
  std::unique_ptr<Sink> sink(const std::string& url) {
    auto opened = GetParam().open_sink(url);
    EXPECT_TRUE(opened) << opened.error().text;
    return opened ? std::move(*opened) : nullptr;
  }
  std::unique_ptr<Source> source(const std::string& url, bool bounded = true) {
    auto opened = GetParam().open_source(url, bounded);
    EXPECT_TRUE(opened) << opened.error().text;
    return opened ? std::move(*opened) : nullptr;
  }
  std::string topic(std::uint32_t partitions = 1) { return GetParam().new_topic(partitions); }

  static Message message(int number) {
    Message made;
    made.id = fmt::format("order {}", number);
    made.key = fmt::format("customer {}", number % 7);
    made.body = fmt::format(R"({{"number": {}}})", number);
    made.timestamp_ms = 1'700'000'000'000 + number;
    return made;
  }
  static std::vector<Message> messages(int from, int to) {
    std::vector<Message> made;
    for (int i = from; i < to; ++i) made.push_back(message(i));
    return made;
  }
  static std::vector<std::string> ids(const std::vector<Read>& reads) {
    std::vector<std::string> found;
    for (const Read& read : reads) found.push_back(read.message.id);
    return found;
  }
  static std::vector<std::string> ids(const std::vector<Message>& sent) {
    std::vector<std::string> found;
    for (const Message& one : sent) found.push_back(one.id);
    return found;
  }

  // The first stamp of a producer; without producers a stamp says nothing.
  static Stamp entered(Sink& sink, std::uint32_t partition, const std::string& name) {
    if (sink.producers() == nullptr) return {};
    const auto stamp = sink.producers()->enter(partition, name);
    EXPECT_TRUE(stamp) << stamp.error().text;
    return stamp.value_or(Stamp{});
  }

  // Whether this broker goes through another suite of this program as well.
  static bool is_in_suite(const std::string& name) {
    const ::testing::UnitTest& program = *::testing::UnitTest::GetInstance();
    const std::string own = program.current_test_suite()->name();
    const std::string wanted = own.substr(0, own.find('/') + 1) + name;
    for (int i = 0; i < program.total_test_suite_count(); ++i)
      if (program.GetTestSuite(i)->name() == wanted) return true;
    return false;
  }

  static Stamp at(Stamp stamp, std::uint64_t sequence) {
    stamp.sequence = sequence;
    return stamp;
  }

  // Polls until `enough` says so, seeking what is announced to `offset`; what takes too long fails.
  static std::vector<Read> read_until(Source& source, std::int64_t offset,
                                      const std::function<bool(const Batch&, std::size_t)>& enough,
                                      std::size_t count_max = 1000) {
    std::vector<Read> reads;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
      auto batch = source.poll(count_max, 50);
      if (!batch) {
        ADD_FAILURE() << batch.error().text;
        return reads;
      }
      if (batch->event == Batch::Event::assigned && source.replay() != nullptr) {
        const Status sought = source.replay()->seek(batch->partition, offset);
        EXPECT_TRUE(sought) << sought.error().text;
      }
      EXPECT_LE(batch->deliveries.size(), count_max);
      for (const Delivery& delivery : batch->deliveries) {
        EXPECT_EQ(delivery.partition, batch->partition);
        reads.push_back(read_of(delivery));
      }
      if (source.replay() == nullptr) {
        const Status acknowledged = source.ack(batch->deliveries);
        EXPECT_TRUE(acknowledged) << acknowledged.error().text;
      }
      if (enough(*batch, reads.size())) return reads;
    }
    ADD_FAILURE() << "the source does not come to an end";
    return reads;
  }
  static bool ended(const Batch& batch, std::size_t) { return batch.event == Batch::Event::end; }

  // Everything that is in a topic; of a queue it is taken out, since it ends where nothing of it is
  // left.
  std::vector<Read> all(const std::string& url) {
    auto reader = source(url);
    return read_until(*reader, -1, ended);
  }

  // Partition by partition, offsets grow.
  void expect_order(const std::vector<Read>& reads) {
    std::map<std::string, std::int64_t> last;
    for (const Read& read : reads) {
      const auto known = last.find(read.partition);
      if (known != last.end() && GetParam().dense_offsets) {
        EXPECT_EQ(read.offset, known->second + 1) << read.partition;
      }
      if (known != last.end()) {
        EXPECT_GT(read.offset, known->second) << read.partition;
      }
      last[read.partition] = read.offset;
    }
  }
};

}  // namespace once::testing
