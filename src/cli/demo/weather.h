// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <random>
#include <string>

#include "cli/demo/journal.h"
#include "model/forwarding_sink.h"

namespace once::cli {

// The bad weather between a program and its broker. Both classes do only what networks and brokers
// do; what they do is in the journal or in the receipts.

// A network in front of a sink. Now and then it loses an answer, so that the same batch with the
// same stamp is sent again; or it lets the second half of a batch overtake the first.
class BadNetwork final : public ForwardingSink {
 public:
  BadNetwork(Sink& sink, std::uint64_t seed) : ForwardingSink(sink), dice_(seed) {}

  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         std::span<const Message> messages) override;

  std::int64_t overtakings() const { return overtakings_; }

 private:
  bool one_in(std::uint64_t n);
  Result<Receipt> append_crossed(std::uint32_t partition, const Stamp& stamp,
                                 std::span<const Message> messages);

  std::mutex mutex_;
  std::mt19937_64 dice_;  // guarded by mutex_
  std::atomic<std::int64_t> overtakings_{0};
};

// A source that writes down every delivery, and whose acks are lost now and then: it then delivers
// again what was not acknowledged, as a broker does. Used by the poller's thread.
class ForgetfulSource final : public Source {
 public:
  ForgetfulSource(Source& source, Journal& journal, std::uint64_t seed)
      : source_(source), journal_(journal), dice_(seed) {}

  SourceTraits traits() const override { return source_.traits(); }
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override;
  Status ack(std::span<const Delivery> done) override;
  Status release(std::span<const Delivery> undone, std::int64_t delay_ms) override {
    return source_.release(undone, delay_ms);
  }
  SourceReplay* replay() override { return source_.replay(); }
  SourceLeases* leases() override { return source_.leases(); }

 private:
  Source& source_;
  Journal& journal_;
  std::mt19937_64 dice_;
  std::map<std::string, std::int64_t, std::less<>> go_back_;  // partition to first lost offset
};

}  // namespace once::cli
