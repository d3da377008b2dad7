// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/handler.h>
#include <once/pipeline.h>
#include <once/source.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/forgetter.h"
#include "runtime/lane.h"
#include "runtime/witness.h"
#include "simulation/context.h"
#include "simulation/faulty_store.h"

namespace once::simulation {

// What consumers of one purpose have in common.
struct Purpose {
  std::string topic;
  PipelineOptions options;     // scope, semantics, id rule, ...
  bool batched = false;        // the handler gets all new messages of a batch at once
  bool forwards = false;       // every effect puts a message into the outbox
  bool double_effect = false;  // a canary
};

// The effect of a message, for which there is no unique key: what is done twice counts twice. The
// first letter of a body says how the handler behaves.
Handler make_handler(Context& context, const Purpose& purpose);
std::string effect_key(const std::string& scope, std::string_view id);
std::string trail_key(const std::string& scope, std::string_view partition);

// A consuming process: the real lane, the real source of the log, driven as the pipeline would.
class Consumer {
 public:
  Consumer(Context& context, FaultyStore& store, const Purpose& purpose, std::uint64_t number,
           std::unique_ptr<testing::SimFiles> files, std::unique_ptr<Source> source);

  // Each does a little. An error is the end of the process: fenced, or the store was away at the
  // wrong moment. Both may throw SimulatedDeath.
  Status poll();
  Status step();
  Status forget();

  bool idle() const { return lane_.idle(); }
  bool at_end() const { return at_end_; }
  const Purpose& purpose() const { return purpose_; }
  std::uint64_t number() const { return number_; }
  const Counters& counters() const { return counters_; }
  bool alive() const { return !killed_ && (!files_ || files_->alive()); }
  void kill() { killed_ = true; }

 private:
  Status assigned(std::string_view partition);
  Result<bool> knows_the_log();
  bool has_a_rival();

  Context& context_;
  FaultyStore& store_;
  const Purpose& purpose_;
  const std::uint64_t number_;
  std::unique_ptr<testing::SimFiles> files_;  // of a process on the broker's machine
  std::unique_ptr<Source> source_;
  Handler handler_;
  Counters counters_;
  StoreClock store_clock_;
  Lane lane_;
  Forgetter forgetter_;
  std::map<std::string, std::uint64_t> fences_;  // of the partitions we took
  std::map<std::string, WitnessCheck, std::less<>> witnesses_;
  bool at_end_ = false;
  bool killed_ = false;
};

}  // namespace once::simulation
