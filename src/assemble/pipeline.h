// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "assemble/shared_stores.h"
#include "config/plan.h"
#include "config/recipe.h"
#include "operate/check.h"
#include "operate/json.h"
#include "operate/patience.h"
#include "operate/runner_group.h"
#include "operate/set_aside.h"
#include "runtime/rehearsal.h"

namespace once::assemble {

// What people know a pipeline by: its file, and its name there.
[[nodiscard]] std::string label_of(const Plan& plan);

// Nothing is opened while the file is wrong: this finds it out.
[[nodiscard]] Status check_recipe(const Plan& plan);

// Everything that a pipeline is made of, in the order in which it has to go.
struct Parts {
  std::shared_ptr<const Recipe> recipe = {};
  LookedAtStore store = {};
  std::unique_ptr<Source> source = {};
  std::vector<SinkTraits> sinks = {};
  std::string promise = {};
  std::vector<std::string> unchecked = {};  // what of the file could not be checked
};

// A pipeline that can be run: `operate::RunnerGroup` runs several, `operate::Runner` one. A source
// that is only opened is no member of its group yet, so that nobody waits for it while the store is
// away.
struct Opened {
  std::shared_ptr<Parts> parts;  // outlive the job
  operate::Job job;
};
[[nodiscard]] Result<Opened> open(const Plan& plan, operate::Patience& patience,
                                  SharedStores& stores);

// What is known of a pipeline without running it. The stores are opened to look.
struct Checked {
  Parts parts;
  operate::Findings findings = {};
};
[[nodiscard]] Result<Checked> check(const Plan& plan, operate::Patience& patience,
                                    SharedStores& stores);
operate::Json json_of(const Plan& plan, const Checked& checked);

// What the next messages would do; all of it is rolled back. The source is only looked at: a
// pipeline that runs keeps its partitions.
[[nodiscard]] Result<std::vector<Rehearsed>> rehearse(const Plan& plan, std::size_t count,
                                                      operate::Patience& patience,
                                                      SharedStores& stores);

// Parks one message that the pipeline has not handled yet. What the file says of statements is not
// looked at: they may be the reason.
[[nodiscard]] Result<operate::SetAside> set_aside(const Plan& plan,
                                                  const operate::SetAsideRequest& request,
                                                  operate::Patience& patience,
                                                  SharedStores& stores);

}  // namespace once::assemble
