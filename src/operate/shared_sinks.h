// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sink.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace once::operate {

// The topics that have one writer at a time, as those of the embedded log, and are written by the
// relays of this process: relays that send to the same one share it, instead of waiting for each
// other for ever. Other topics are opened for each relay. Any thread may call it.
class SharedSinks {
 public:
  // The topic is closed when nobody has what this answers.
  [[nodiscard]] Result<std::shared_ptr<Sink>> open(const std::string& url);

 private:
  class Topic;

  std::mutex mutex_;                                    // taken with no other lock
  std::map<std::string, std::weak_ptr<Topic>> topics_;  // by name; guarded by mutex_
};

}  // namespace once::operate
