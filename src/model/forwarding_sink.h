// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sink.h>

#include <cstdint>
#include <span>

namespace once {

// A sink in front of another one. Everything is forwarded, capabilities included; a class overrides
// what it changes.
class ForwardingSink : public Sink {
 public:
  SinkTraits traits() const override { return inner_.traits(); }
  Result<std::uint32_t> partitions() override { return inner_.partitions(); }
  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         std::span<const Message> messages) override {
    return inner_.append(partition, stamp, messages);
  }
  SinkProducers* producers() override { return inner_.producers(); }

 protected:
  explicit ForwardingSink(Sink& inner) : inner_(inner) {}

  Sink& inner() { return inner_; }

 private:
  Sink& inner_;  // outlives this
};

}  // namespace once
