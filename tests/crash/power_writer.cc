// SPDX-License-Identifier: Apache-2.0
// The two ends of a topic for the power cuts of power_cuts.py.
//
//   power_writer write DIRECTORY synced|unsynced   sends m0, m1, ... and prints how many of them
//                                                  were acknowledged, until it is killed
//   power_writer read DIRECTORY                    prints the messages, without a writer
//   power_writer open DIRECTORY                    opens it as a writer and prints how many it has
//
// `unsynced` is the control: the same log on files that forget to sync.
#include <fmt/format.h>
#include <once/log.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "log/topic.h"

namespace once {
namespace {

constexpr const char* topic = "orders";

class UnsyncedFile final : public File {
 public:
  explicit UnsyncedFile(std::unique_ptr<File> file) : file_(std::move(file)) {}
  Result<std::size_t> read_at(std::int64_t offset, std::span<char> into) override {
    return file_->read_at(offset, into);
  }
  Status write_at(std::int64_t offset, std::span<const std::string_view> parts) override {
    return file_->write_at(offset, parts);
  }
  Status sync() override { return {}; }
  Result<std::int64_t> size() override { return file_->size(); }
  Status resize(std::int64_t bytes) override { return file_->resize(bytes); }

 private:
  std::unique_ptr<File> file_;
};

class UnsyncedFiles final : public Files {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    return std::make_unique<UnsyncedFile>(ONCE_TRY(system_files().open(path, mode)));
  }
  Result<std::vector<DirectoryEntry>> entries(const std::string& directory) override {
    return system_files().entries(directory);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return system_files().rename(from, to);
  }
  Status remove(const std::string& path) override { return system_files().remove(path); }
  Status sync_directory(const std::string&) override { return {}; }
};

Message message_of(std::uint64_t number) {
  Message message;
  message.id = fmt::format("m{}", number);
  message.body = message.id + std::string(number * 7919 % 700, 'x');
  return message;
}

Status write(Files& files, const std::string& directory) {
  TopicOptions options;
  options.segment_bytes_max = 64 << 10;
  ONCE_TRY(log::create_topic(files, directory, topic, options));
  auto sink = ONCE_TRY(log::open_log_sink(files, directory, topic, system_clock()));
  Stamp stamp = ONCE_TRY(sink->producers()->enter(0, "shop"));
  for (;;) {
    std::vector<Message> group;
    const std::uint64_t count = 1 + stamp.sequence * 31 % 5;
    for (std::uint64_t i = 0; i < count; ++i) group.push_back(message_of(stamp.sequence + i));
    ONCE_TRY(sink->append(0, stamp, group));
    stamp.sequence += count;
    // One write: a line is in the pipe whole or not at all.
    const std::string line = fmt::format("{}\n", stamp.sequence);
    if (::write(STDOUT_FILENO, line.data(), line.size()) < 0)
      return fail(Remedy::stop, "pipe", "nobody listens any more");
  }
}

Status read(const std::string& directory) {
  auto source = ONCE_TRY(open_log_source(directory, topic, {.stop_at_end = true}));
  for (;;) {
    const Batch batch = ONCE_TRY(source->poll(1000, 0));
    if (batch.event == Batch::Event::end) return {};
    if (batch.event == Batch::Event::assigned)
      ONCE_TRY(source->replay()->seek(batch.partition, -1));
    for (const Delivery& delivery : batch.deliveries) {
      const Message wanted = message_of(static_cast<std::uint64_t>(delivery.offset));
      if (delivery.id != wanted.id || delivery.body != wanted.body)
        return fail(Remedy::stop, "wrong",
                    fmt::format("offset {} has the message {}", delivery.offset, delivery.id));
      fmt::print("{}\n", delivery.id);
    }
  }
}

Status open(const std::string& directory) {
  auto sink = ONCE_TRY(open_log_sink(directory, topic));
  fmt::print("{}\n", ONCE_TRY(sink->producers()->enter(0, "shop")).sequence);
  return {};
}

Status run(const std::vector<std::string>& words) {
  if (words.size() == 3 && words[0] == "write") {
    UnsyncedFiles unsynced;
    return write(words[2] == "unsynced" ? unsynced : system_files(), words[1]);
  }
  if (words.size() == 2 && words[0] == "read") return read(words[1]);
  if (words.size() == 2 && words[0] == "open") return open(words[1]);
  return fail(Remedy::stop, "usage", "write DIRECTORY MODE, read DIRECTORY or open DIRECTORY");
}

}  // namespace
}  // namespace once

int main(int argc, char** argv) {
  const once::Status done = once::run({argv + 1, argv + argc});
  if (done) return 0;
  std::fprintf(stderr, "%s: %s\n", done.error().tag.c_str(), done.error().text.c_str());
  return 1;
}
