// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>
#include <once/store.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/store_language.h"
#include "model/store_state.h"

namespace once {

// The source of a URL for somebody who only looks: it reads all partitions, joins no group and
// acknowledges nothing, so that a pipeline on the same URL is not disturbed.
[[nodiscard]] Result<std::unique_ptr<Source>> open_source_to_look(std::string_view url);

// A source whose messages no broker shares out: one process reads it for a scope, and a second one
// would take its partitions away. Such processes take turns.
[[nodiscard]] bool is_for_one_process(std::string_view source_url);

// What was acknowledged is gone, and what others hold is not seen: somebody who only looks does not
// see all of it, and an audit cannot compare it.
[[nodiscard]] bool is_queue(std::string_view url);

// The name of the topic, if only one process at a time can write it and the others are refused;
// otherwise empty.
[[nodiscard]] std::string topic_with_one_writer(std::string_view sink_url);

// In what its statements are written; nothing is opened.
[[nodiscard]] Result<StoreLanguage> store_language_of(std::string_view url);

// Whether the store of this URL was made; makes no file, table or key.
[[nodiscard]] Result<StoreState> store_state_at(std::string_view url);

// The store of a URL for somebody who only looks: no file, table or key is made or changed. One
// that no pipeline of this version has used yet can be asked what it is and about statements; its
// books cannot be read.
struct LookedAtStore {
  std::shared_ptr<Store> store;
  StoreState state = StoreState::current;
  std::string made_file = {};  // that was not there before it was opened; empty: it was
};
[[nodiscard]] Result<LookedAtStore> open_store_to_look(std::string_view url);

// The file that a store would be in, which is not there: its absolute path. Empty: it is there, or
// the store is no file. A slip in a path is found by it, since a run makes the file.
[[nodiscard]] std::string missing_file_of(std::string_view url);

// What a sink would refuse when it is used, such as a setting that its broker does not allow; opens
// and writes nothing.
[[nodiscard]] Status check_sink_at(std::string_view url);

// What a person should know about the libraries behind a URL, whatever the topic is: worth a look
// before something is set up, not at every start.
[[nodiscard]] std::vector<std::string> advice_about(std::string_view url);

}  // namespace once
