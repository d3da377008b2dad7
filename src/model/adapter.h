// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sink.h>
#include <once/source.h>
#include <once/store.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/url.h"
#include "model/store_language.h"
#include "model/store_state.h"
#include "model/topic_address.h"
#include "model/topics.h"

namespace once {

// What an adapter is to the rest of Once: the schemes of its URLs, what can be opened by them, and
// what is special about them. Nothing else knows a scheme. A function that is missing is something
// the adapter does not offer; the functions are called only with URLs of its schemes.
// `open/adapters.cc` has one line per adapter.
struct Adapter {
  // The first is the usual one.
  std::span<const std::string_view> schemes;

  Result<std::unique_ptr<Source>> (*source)(std::string_view url) = nullptr;
  // For somebody who only looks: reads all partitions, joins no group and acknowledges nothing.
  // Missing: `source` disturbs nobody.
  Result<std::unique_ptr<Source>> (*source_to_look)(std::string_view url) = nullptr;
  // Whether the broker shares the messages out among the processes that read this URL. Missing: it
  // does not; one process reads it for a scope at a time, and the others stand by.
  bool (*shares_out)(const Url& url) = nullptr;
  // Whether what was acknowledged is gone, and what others hold is not seen by somebody who only
  // looks: an audit cannot compare it. Missing: everything can be read again.
  bool (*is_queue)(const Url& url) = nullptr;
  // The parameter of a source's URL that names a consumer group; empty: there are no groups.
  std::string_view group_parameter = {};
  // The parameters that say who reads and from where. Who only looks leaves them out.
  std::span<const std::string_view> reader_parameters = {};

  Result<std::unique_ptr<Sink>> (*sink)(std::string_view url) = nullptr;
  // What the sink promises, without opening it; there if `sink` is.
  Result<SinkTraits> (*sink_traits)(std::string_view url) = nullptr;
  // What the sink would refuse when it is used; writes nothing. Missing: nothing more than opening
  // it does.
  Status (*sink_check)(std::string_view url) = nullptr;
  // A topic has one writer at a time, who holds a lock: the relays of a process share it.
  bool has_one_writer = false;

  const Topics* topics = nullptr;
  // The topics of a URL; there if `source` or `sink` is. What would read its own messages without
  // end is found by it. Unset: the URL names none.
  std::optional<TopicAddress> (*topic_address)(const Url& url) = nullptr;

  Result<std::unique_ptr<Store>> (*store)(std::string_view url) = nullptr;
  // A store that is not made, or of an older version: it can only be asked what it is and about
  // statements, and nothing is made or changed. Missing: `store` makes nothing that lasts.
  Result<std::unique_ptr<Store>> (*store_to_look)(std::string_view url) = nullptr;
  // Makes nothing. Missing: such a store is always current.
  Result<StoreState> (*store_state)(std::string_view url) = nullptr;
  StoreLanguage language = {};
  // The path of a URL is a file that `store` makes where it is missing.
  bool store_is_file = false;

  // What a person should know about the library behind it before something is set up.
  std::vector<std::string> (*advice)() = nullptr;
};

}  // namespace once
