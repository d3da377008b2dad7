// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sink.h>
#include <once/source.h>
#include <once/store.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/store_state.h"
#include "model/topics.h"

namespace once {

// What an adapter is to the rest of Once: the schemes of its URLs and what can be opened by them.
// A function that is missing is something the adapter does not offer; the functions are called only
// with URLs of its schemes. `open/adapters.cc` has one line per adapter.
struct Adapter {
  // The first is the usual one.
  std::span<const std::string_view> schemes;

  Result<std::unique_ptr<Source>> (*source)(std::string_view url) = nullptr;
  // For somebody who only looks: reads all partitions, joins no group and acknowledges nothing.
  // Missing: `source` disturbs nobody.
  Result<std::unique_ptr<Source>> (*source_to_look)(std::string_view url) = nullptr;
  Result<std::unique_ptr<Sink>> (*sink)(std::string_view url) = nullptr;
  // What the sink promises, without opening it; there if `sink` is.
  Result<SinkTraits> (*sink_traits)(std::string_view url) = nullptr;
  const Topics* topics = nullptr;

  Result<std::unique_ptr<Store>> (*store)(std::string_view url) = nullptr;
  // A store that is not made, or of an older version: it can only be asked what it is and about
  // statements, and nothing is made or changed. Missing: `store` makes nothing that lasts.
  Result<std::unique_ptr<Store>> (*store_to_look)(std::string_view url) = nullptr;
  // Makes nothing. Missing: such a store is always current.
  Result<StoreState> (*store_state)(std::string_view url) = nullptr;

  // What a person should know about the library behind it before something is set up.
  std::vector<std::string> (*advice)() = nullptr;
};

}  // namespace once
