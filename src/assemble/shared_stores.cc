// SPDX-License-Identifier: Apache-2.0
#include "assemble/shared_stores.h"

#include <once/open.h>

#include <utility>

namespace once::assemble {

Result<LookedAtStore> SharedStores::to_run(std::string_view url) {
  return LookedAtStore{ONCE_TRY(open_store(url))};
}

Result<LookedAtStore> SharedStores::open(const std::string& url) {
  const std::scoped_lock lock(mutex_);
  Known& known = stores_[url];
  if (auto store = known.store.lock()) return LookedAtStore{std::move(store), known.state};
  LookedAtStore made = ONCE_TRY(open_(url));
  known = {made.store, made.state};
  return made;
}

}  // namespace once::assemble
