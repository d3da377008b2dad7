// SPDX-License-Identifier: Apache-2.0
#include "operate/pipeline_role.h"

#include <once/clock.h>

#include <chrono>
#include <exception>

namespace once::operate {
namespace {

constexpr std::chrono::milliseconds look_every(100);

}  // namespace

PipelineRole::PipelineRole(Store& store, const std::string& scope)
    : role_(*store.claims(), {.scope = std::string(pipeline_scope), .id = scope}, system_clock()) {}

PipelineRole::~PipelineRole() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<bool> PipelineRole::await(const std::function<bool()>& stopped, EventLog& events,
                                 const std::function<void(const std::string&)>& on_wait) {
  std::string told;
  while (!stopped()) {
    const auto held = role_.hold();
    if (!held && !is_transient(held.error().remedy)) return held;
    if (held)
      events.back(the_store, {}, this);
    else
      events.away(the_store, {}, this, held.error());
    if (held && *held) return true;
    if (held && role_.holder() != told) on_wait(told = role_.holder());
    if (!rest()) break;
  }
  return false;
}

void PipelineRole::keep() {
  thread_ = std::thread([this] { work(); });
}

// A pipeline that lost its role is fenced by the one that has it: there is nothing to be done here.
// What throws, as without memory, is tried again with the next look.
void PipelineRole::work() {
  while (rest()) {
    try {
      (void)role_.hold();
    } catch (const std::exception&) {
      continue;
    }
  }
}

bool PipelineRole::rest() {
  std::unique_lock lock(mutex_);
  return !ended_.wait_for(lock, look_every, [this] { return ending_; });
}

}  // namespace once::operate
