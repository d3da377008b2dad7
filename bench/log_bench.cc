// SPDX-License-Identifier: Apache-2.0
// Appends with producer dedup, durable when they return, beside the same bytes written raw.
#include <fmt/format.h>
#include <once/log.h>

#include <fstream>
#include <thread>

#include "benchmarks.h"
#include "load.h"
#include "raw_log.h"

namespace once::bench {
namespace {

constexpr std::size_t in_flight = 1000;

struct Shape {
  std::size_t groups = 0;     // per round
  std::size_t producers = 1;  // threads that share the messages in flight
};

std::vector<Message> make_bodies(std::size_t count) {
  std::vector<Message> messages = make_messages(IdKind::uuid7, 0, count);
  for (Message& message : messages) {
    message.id.clear();
    message.key.reset();
  }
  return messages;
}

void produce(Sink& sink, const std::string& name, std::span<const Message> messages,
             std::size_t times) {
  Stamp stamp = must(sink.producers()->enter(0, name));
  for (std::size_t i = 0; i < times; ++i) {
    const Receipt receipt = must(sink.append(0, stamp, messages));
    if (receipt.duplicates != 0) give_up("the log took a new message for a duplicate");
    stamp.sequence += messages.size();
  }
}

struct Ours {
  double messages_per_s = 0;
  std::string share;  // what one append left on disk, for the peer to write the same bytes
};

// The average share, from the middle of the file: how fast a disk is may depend on what it is
// given.
std::string one_share(const Workspace& workspace, const TopicInfo& info, const Shape& shape) {
  const auto bytes = static_cast<std::size_t>(info.partitions[0].bytes);
  std::string share(bytes / shape.groups / shape.producers, '\0');
  std::ifstream file(workspace.path("load/0/00000000000000000000.log"), std::ios::binary);
  file.seekg(static_cast<std::streamoff>(share.size()));
  if (!file.read(share.data(), static_cast<std::streamsize>(share.size())))
    give_up("the log's first segment is too short");
  return share;
}

Ours ours(const Settings& settings, const std::vector<Message>& messages, const Shape& shape) {
  const Workspace workspace(settings);
  must(create_topic(workspace.directory(), "load", {}));
  const std::size_t share = messages.size() / shape.producers;
  Ours answer;
  {
    const auto sink = must(open_log_sink(workspace.directory(), "load"));
    const Stopwatch watch;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < shape.producers; ++i)
      threads.emplace_back([&, i] {
        produce(*sink, fmt::format("producer {}", i), std::span(messages).subspan(i * share, share),
                shape.groups);
      });
    threads.clear();
    answer.messages_per_s = static_cast<double>(messages.size() * shape.groups) / watch.seconds();
  }
  const TopicInfo info = must(describe_topic(workspace.directory(), "load"));
  const auto expected = static_cast<std::int64_t>(messages.size() * shape.groups);
  if (info.partitions[0].end_offset != expected) give_up("the log lost messages");
  answer.share = one_share(workspace, info, shape);
  return answer;
}

double raw(const Settings& settings, std::string_view share, const Shape& shape) {
  const Workspace workspace(settings);
  RawGroupLog log(workspace.path("raw"));
  const Stopwatch watch;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < shape.producers; ++i)
    threads.emplace_back([&] {
      for (std::size_t group = 0; group < shape.groups; ++group) log.append(share);
    });
  threads.clear();
  return static_cast<double>(in_flight * shape.groups) / watch.seconds();
}

Comparison compare_appends(const Settings& settings, const Shape& shape) {
  const std::vector<Message> messages = make_bodies(in_flight);
  const std::string share = ours(settings, messages, shape).share;
  return compare(
      settings,
      {.name = fmt::format("log append of 100-byte messages, 1,000 in flight from {} producer{}, "
                           "against raw group commit of the same bytes, messages/s",
                           shape.producers, shape.producers == 1 ? "" : "s"),
       .aim = 0.8},
      [&] { return ours(settings, messages, shape).messages_per_s; },
      [&] { return raw(settings, share, shape); });
}

}  // namespace

void bench_log(const Settings& settings) {
  const std::size_t groups = settings.size(1'000, 20);
  const std::vector<Comparison> comparisons = {
      compare_appends(settings, {.groups = groups, .producers = 1}),
      compare_appends(settings, {.groups = groups, .producers = 4}),
  };
  write_results(
      settings, "log",
      {{"groups_per_round", groups}, {"messages_in_flight", in_flight}, {"body_bytes", body_bytes}},
      comparisons);
}

}  // namespace once::bench
