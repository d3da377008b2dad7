// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "open/look.h"

namespace once::assemble {

// Stores by their URLs: pipelines with the same one use it together, so that they do not wait for
// each other's locks. Closed when the last of them is. Any thread may call it.
class SharedStores {
 public:
  using Open = Result<LookedAtStore> (*)(std::string_view url);
  explicit SharedStores(Open how) : open_(how) {}

  // Makes what a store is missing.
  static Result<LookedAtStore> to_run(std::string_view url);
  // Makes and changes nothing.
  static Result<LookedAtStore> to_look(std::string_view url) { return open_store_to_look(url); }

  [[nodiscard]] Result<LookedAtStore> open(const std::string& url);

 private:
  struct Known {
    std::weak_ptr<Store> store;
    StoreState state = StoreState::current;
    std::string made_file;
  };
  const Open open_;
  std::mutex mutex_;  // taken with no other lock
  std::map<std::string, Known> stores_;
};

}  // namespace once::assemble
