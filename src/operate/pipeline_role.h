// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/store.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "runtime/event_log.h"
#include "runtime/role.h"

namespace once::operate {

// Where the claims of pipelines are; the id is the scope that a process runs.
inline constexpr std::string_view pipeline_scope = "once.pipeline";

// The right of this process to run the pipeline of a scope. Looked after by a thread of its own
// while the pipeline runs; given back when it is destroyed.
class PipelineRole {
 public:
  PipelineRole(Store& store, const std::string& scope);
  ~PipelineRole();

  // Waits until the role is ours; false when `stopped` says so first. `on_wait` is told, once for
  // each, which process has it, and `events` when the store cannot be asked.
  [[nodiscard]] Result<bool> await(const std::function<bool()>& stopped, EventLog& events,
                                   const std::function<void(const std::string&)>& on_wait);
  void keep();  // from now on

 private:
  void work();
  bool rest();  // false: it is over

  Role role_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace once::operate
