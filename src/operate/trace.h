// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/identity.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "operate/books.h"
#include "operate/json.h"
#include "operate/tell.h"

namespace once::operate {

struct TraceRequest {
  std::string id;
  std::string source_url = {};  // a topic to look for the message in; empty: only the store
  IdRule id_rule = {};          // how the ids of its messages are found
};

// How a search goes, which may be long.
struct TraceWatch {
  Tell tell;
  std::function<void(std::int64_t)> on_searched;  // messages of the source so far
};

// Something that is known about an id.
struct Finding {
  std::optional<std::int64_t> at_ms;  // unset: it is so at present
  std::string scope;                  // empty outside of the store's scopes
  std::string kind;  // where: ledger, claim, parked, waiting, operation, outbox, source
  std::string text;
  Json record;
};

struct TraceReport {
  std::string id;
  std::vector<Finding> findings = {};  // by time
  // The sentence that the store knows nothing of the id; empty: it does.
  std::string not_known = {};
  std::optional<Error> source_error = {};  // why the source could not be searched
};

// What happened to an id. What the store knows is answered even if the source cannot be read.
[[nodiscard]] Result<TraceReport> trace_id(Books& books, const TraceRequest& request,
                                           const TraceWatch& watch);

Json json_of(const TraceReport& report);

}  // namespace once::operate
