// SPDX-License-Identifier: Apache-2.0
#include "store/memory/adapter.h"

#include <fmt/format.h>
#include <once/open.h>

#include <array>

#include "base/url.h"

namespace once {
namespace {

constexpr std::array<std::string_view, 1> schemes{"memory"};

Result<std::unique_ptr<Store>> open_memory(std::string_view text) {
  const Url url = ONCE_TRY(parse_url(text));
  ONCE_TRY(require_parameters(url, {}));
  if (!url.path.empty())
    return fail(Remedy::stop, "url",
                fmt::format("\"{}\" has a path, but memory is not kept anywhere; write memory: or "
                            "sqlite:{}",
                            shown_url(text), url.path));
  return open_memory_store();
}

}  // namespace

const Adapter& memory_adapter() {
  static const Adapter adapter{.schemes = schemes, .store = open_memory};
  return adapter;
}

}  // namespace once
