// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>
#include <once/store.h>

#include <memory>
#include <string_view>

#include "model/store_state.h"

namespace once {

// The source of a URL for somebody who only looks: it reads all partitions, joins no group and
// acknowledges nothing, so that a pipeline on the same URL is not disturbed.
[[nodiscard]] Result<std::unique_ptr<Source>> open_source_to_look(std::string_view url);

// The store of a URL for somebody who only looks: no file, table or key is made or changed. One
// that no pipeline of this version has used yet can be asked what it is and about statements; its
// books cannot be read.
struct LookedAtStore {
  std::shared_ptr<Store> store;
  StoreState state = StoreState::current;
};
[[nodiscard]] Result<LookedAtStore> open_store_to_look(std::string_view url);

}  // namespace once
