// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/handler.h>
#include <once/pipeline.h>
#include <once/source.h>
#include <once/store.h>

#include <string>
#include <vector>

#include "model/hint.h"

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
  std::string source_url = {};  // of `source`; empty: it has none
  std::string store_url = {};   // of `store`, for the commands that errors name; empty: it has none
  std::vector<Destination> destinations = {};
  std::string relay_name = {};   // before the names of the producers that send
  SharedSinks* sinks = nullptr;  // of the process; unset: each relay opens its own
  bool has_effects = true;       // the handler does more than emit messages
  bool takes_turns = false;      // one process at a time can read the source; the others stand by
};

// What the commands that errors of a job name do not know themselves. A URL with a password is not
// shown; then the store is named by ONCE_STORE.
[[nodiscard]] HintPlace hint_place_of(const Job& job);
[[nodiscard]] Error with_complete_hints(Error error, const Job& job);

}  // namespace once::operate
