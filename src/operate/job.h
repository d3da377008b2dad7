// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/handler.h>
#include <once/pipeline.h>
#include <once/source.h>
#include <once/store.h>

#include <string>
#include <vector>

namespace once::operate {

// Where messages go that are emitted under a name of the outbox.
struct Destination {
  std::string url;
  std::string name;    // in the outbox: run/SCOPE/…
  std::string origin;  // what asks for it, for errors: a file with line and column, a command
};

class SharedSinks;

// A pipeline to run, and where the messages go that it emits. Source and store outlive it.
struct Job {
  std::string name;  // what people know it by: a file, a command
  Source& source;
  Store& store;
  Handler handler;
  PipelineOptions options;
  std::vector<Destination> destinations = {};
  std::string relay_name = {};   // before the names of the producers that send
  SharedSinks* sinks = nullptr;  // of the process; unset: each relay opens its own
  bool has_effects = true;       // the handler does more than emit messages
  bool takes_turns = false;      // one process at a time can read the source; the others stand by
};

}  // namespace once::operate
