// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/producer.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/broker.h"

namespace once::simulation {

// A program that has messages to send. It crashes and starts again; what it has to send and what
// was acknowledged is durable with it.
class Sender {
 public:
  enum class Kind {
    replaying,  // the real producer; after a restart it sends all from the start, with old numbers
    resuming,   // the real producer; after a restart it sends what has no receipt, with new numbers
    pipelined,  // several requests under way, so that they overtake each other
  };

  Sender(Context& context, Network& network, RemoteSink& sink, std::string name, Kind kind,
         std::vector<Message> messages);

  // Opens what is closed, or sends a little.
  void step();
  void crash();
  bool done() const;
  std::vector<std::string> acknowledged_ids() const;

 private:
  struct Line {  // to one partition
    std::optional<Stamp> stamp;
    std::vector<std::size_t> messages;  // their sequences are their places here
    std::vector<bool> acknowledged;
  };

  void open();
  void send_through_producer();
  void send_pipelined();
  void give_birth(Message& message);
  void must_start_again(const Error& error);

  Context& context_;
  Network& network_;
  RemoteSink& sink_;
  const std::string name_;
  const Kind kind_;
  std::vector<Message> messages_;

  std::unique_ptr<Producer> producer_;
  std::size_t next_ = 0;          // the first one not given to the producer
  std::size_t acknowledged_ = 0;  // all before it have a receipt

  std::vector<Line> lines_;  // only when pipelined
};

}  // namespace once::simulation
