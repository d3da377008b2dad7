// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/source.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

namespace once::operate {

// A source that gives no more than some messages per second; 0 is no limit.
class PacedSource final : public Source {
 public:
  PacedSource(std::unique_ptr<Source> source, std::int64_t per_second)
      : source_(std::move(source)), per_second_(per_second) {}

  SourceTraits traits() const override { return source_->traits(); }

  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override {
    if (per_second_ == 0) return source_->poll(count_max, wait_ms);
    const std::int64_t early_ns = next_ns_ - system_clock().ticks_ns();
    if (early_ns > wait_ms * 1'000'000) {
      std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
      return Batch{};
    }
    if (early_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(early_ns));
    // A tenth of a second's worth at a time keeps it even.
    const auto some = static_cast<std::size_t>(std::max<std::int64_t>(1, per_second_ / 10));
    Batch batch = ONCE_TRY(source_->poll(std::min(count_max, some), wait_ms));
    const auto taken = static_cast<std::int64_t>(batch.deliveries.size());
    next_ns_ = std::max(next_ns_, system_clock().ticks_ns()) + taken * 1'000'000'000 / per_second_;
    return batch;
  }

  Status ack(std::span<const Delivery> done) override { return source_->ack(done); }
  Status release(std::span<const Delivery> undone, std::int64_t delay_ms) override {
    return source_->release(undone, delay_ms);
  }
  SourceReplay* replay() override { return source_->replay(); }
  SourceLeases* leases() override { return source_->leases(); }
  void leave() override { source_->leave(); }

 private:
  const std::unique_ptr<Source> source_;
  const std::int64_t per_second_;
  std::int64_t next_ns_ = 0;
};

}  // namespace once::operate
