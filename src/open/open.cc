// SPDX-License-Identifier: Apache-2.0
#include <once/open.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/local_path.h"
#include "base/url.h"
#include "open/adapters.h"
#include "open/look.h"
#include "open/shared_topic.h"

namespace once {
namespace {

bool can_read(const Adapter& adapter) { return adapter.source != nullptr; }
bool can_write(const Adapter& adapter) {
  ONCE_ASSERT((adapter.sink != nullptr) == (adapter.sink_traits != nullptr));
  return adapter.sink != nullptr;
}
bool can_store(const Adapter& adapter) { return adapter.store != nullptr; }

}  // namespace

Result<std::unique_ptr<Source>> open_source(std::string_view url) {
  return ONCE_TRY(adapter_of(url, "source", can_read))->source(url);
}

Result<std::unique_ptr<Source>> open_source_to_look(std::string_view url) {
  const Adapter& adapter = *ONCE_TRY(adapter_of(url, "source", can_read));
  return adapter.source_to_look != nullptr ? adapter.source_to_look(url) : adapter.source(url);
}

Result<std::unique_ptr<Sink>> open_sink(std::string_view url) {
  return ONCE_TRY(adapter_of(url, "sink", can_write))->sink(url);
}

Result<SinkTraits> sink_traits_of(std::string_view url) {
  return ONCE_TRY(adapter_of(url, "sink", can_write))->sink_traits(url);
}

Result<std::unique_ptr<Store>> open_store(std::string_view url) {
  return ONCE_TRY(adapter_of(url, "store", can_store))->store(url);
}

Result<StoreState> store_state_at(std::string_view url) {
  const Adapter& adapter = *ONCE_TRY(adapter_of(url, "store", can_store));
  return adapter.store_state != nullptr ? adapter.store_state(url) : StoreState::current;
}

Result<LookedAtStore> open_store_to_look(std::string_view url) {
  const Adapter& adapter = *ONCE_TRY(adapter_of(url, "store", can_store));
  const StoreState state = ONCE_TRY(store_state_at(url));
  const bool is_made = state == StoreState::current || adapter.store_to_look == nullptr;
  return LookedAtStore{ONCE_TRY(is_made ? adapter.store(url) : adapter.store_to_look(url)), state};
}

Result<StoreLanguage> store_language_of(std::string_view url) {
  return ONCE_TRY(adapter_of(url, "store", can_store))->language;
}

bool is_for_one_process(std::string_view source_url) {
  const auto url = parse_url(source_url);
  const Adapter* adapter = url ? adapter_of_scheme(url->scheme) : nullptr;
  return adapter != nullptr && (adapter->shares_out == nullptr || !adapter->shares_out(*url));
}

bool is_queue(std::string_view text) {
  const auto url = parse_url(text);
  const Adapter* adapter = url ? adapter_of_scheme(url->scheme) : nullptr;
  return adapter != nullptr && adapter->is_queue != nullptr && adapter->is_queue(*url);
}

std::string topic_with_one_writer(std::string_view sink_url) {
  const auto adapter = adapter_of(sink_url, "sink", can_write);
  if (!adapter || !(*adapter)->has_one_writer) return {};
  const auto address = topic_address_of(sink_url);
  return address && address->topics.size() == 1 ? address->topics.front().name : std::string();
}

std::string missing_file_of(std::string_view text) {
  const auto url = parse_url(text);
  if (!url || url->path.empty()) return {};
  const Adapter* adapter = adapter_of_scheme(url->scheme);
  if (adapter == nullptr || !adapter->store_is_file) return {};
  const auto file = system_files().open(url->path, OpenMode::read);
  if (file || file.error().tag != "missing") return {};
  return absolute_path(url->path);
}

Status check_sink_at(std::string_view url) {
  const Adapter& adapter = *ONCE_TRY(adapter_of(url, "sink", can_write));
  return adapter.sink_check != nullptr ? adapter.sink_check(url) : Status();
}

std::vector<std::string> advice_about(std::string_view url) {
  const auto adapter = adapter_of(url, "adapter", [](const Adapter&) { return true; });
  if (!adapter || (*adapter)->advice == nullptr) return {};
  return (*adapter)->advice();
}

}  // namespace once
