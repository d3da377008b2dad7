// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sink.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace once {

// A sink in front of another one. Everything is forwarded, optional functions included; a class
// overrides what it changes.
class ForwardingSink : public Sink {
 public:
  Result<std::uint32_t> partitions() override { return inner_.partitions(); }
  Result<Stamp> enter(std::uint32_t partition, std::string_view name) override {
    return inner_.enter(partition, name);
  }
  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         std::span<const Message> messages) override {
    return inner_.append(partition, stamp, messages);
  }
  Result<std::uint64_t> sent_by(std::uint32_t partition, std::string_view name) override {
    return inner_.sent_by(partition, name);
  }
  Result<std::optional<std::uint64_t>> last_digest(std::uint32_t partition,
                                                   std::string_view name) override {
    return inner_.last_digest(partition, name);
  }
  bool takes_unnamed() const override { return inner_.takes_unnamed(); }
  Result<std::int64_t> producer_horizon_ms(std::uint32_t partition) override {
    return inner_.producer_horizon_ms(partition);
  }

 protected:
  explicit ForwardingSink(Sink& inner) : inner_(inner) {}

  Sink& inner() { return inner_; }

 private:
  Sink& inner_;  // outlives this
};

}  // namespace once
