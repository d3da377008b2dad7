// SPDX-License-Identifier: Apache-2.0
#include "operate/shared_sinks.h"

#include <once/open.h>

#include <optional>
#include <utility>

#include "open/look.h"

namespace once::operate {

// A writer that failed is closed for all and opened again with the next call: one relay that has
// nothing to send must not keep it, and with it the lock of the topic. A message that is refused is
// no failure of the writer.
class SharedSinks::Topic final : public Sink, public SinkProducers {
 public:
  Topic(std::string url, SinkTraits traits) : url_(std::move(url)), traits_(std::move(traits)) {}

  SinkTraits traits() const override { return traits_; }
  SinkProducers* producers() override { return this; }

  Result<std::uint32_t> partitions() override {
    return use([](Sink& sink) { return sink.partitions(); });
  }
  Result<Stamp> enter(std::uint32_t partition, std::string_view name) override {
    return use([&](Sink& sink) { return sink.producers()->enter(partition, name); });
  }
  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         std::span<const Message> messages) override {
    return use([&](Sink& sink) { return sink.append(partition, stamp, messages); });
  }
  Result<std::uint64_t> sent_by(std::uint32_t partition, std::string_view name) override {
    return use([&](Sink& sink) { return sink.producers()->sent_by(partition, name); });
  }
  Result<std::optional<std::uint64_t>> last_digest(std::uint32_t partition,
                                                   std::string_view name) override {
    return use([&](Sink& sink) { return sink.producers()->last_digest(partition, name); });
  }
  Result<std::int64_t> producer_horizon_ms(std::uint32_t partition) override {
    return use([&](Sink& sink) { return sink.producers()->producer_horizon_ms(partition); });
  }

  [[nodiscard]] Status open() {
    (void)ONCE_TRY(opened());
    return {};
  }

 private:
  Result<std::shared_ptr<Sink>> opened() {
    const std::scoped_lock lock(mutex_);
    if (!sink_) sink_ = ONCE_TRY(open_sink(url_));
    return sink_;
  }

  template <class Work>
  auto use(const Work& work) -> std::invoke_result_t<Work, Sink&> {
    std::shared_ptr<Sink> sink = ONCE_TRY(opened());
    auto answer = work(*sink);
    if (!answer && answer.error().remedy != Remedy::park) close(sink);
    return answer;
  }

  void close(const std::shared_ptr<Sink>& failed) {
    const std::scoped_lock lock(mutex_);
    if (sink_ == failed) sink_.reset();
  }

  const std::string url_;
  const SinkTraits traits_;
  std::mutex mutex_;            // not held while the sink works
  std::shared_ptr<Sink> sink_;  // guarded by mutex_; none: to be opened
};

Result<std::shared_ptr<Sink>> SharedSinks::open(const std::string& url) {
  SinkTraits traits = ONCE_TRY(sink_traits_of(url));
  const std::string name = topic_with_one_writer(url);
  if (name.empty()) return open_sink(url);
  std::shared_ptr<Topic> topic;
  {
    const std::scoped_lock lock(mutex_);
    topic = topics_[name].lock();
    if (!topic) topics_[name] = topic = std::make_shared<Topic>(url, std::move(traits));
  }
  ONCE_TRY(topic->open());
  return topic;
}

}  // namespace once::operate
