// SPDX-License-Identifier: Apache-2.0
#include <once/identity.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"

// Whatever decodes encodes to the same bytes; whatever is cut into parts and encoded comes back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace once;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto parts = decode_tuple(input)) {
    const std::vector<std::string_view> views(parts->begin(), parts->end());
    ONCE_ASSERT(encode_tuple(views) == input);
  }
  std::vector<std::string_view> cut;
  for (std::size_t at = 0; at < input.size();) {
    const std::size_t length = static_cast<std::uint8_t>(input[at]) % 5;
    cut.push_back(input.substr(at, length));
    at += length + 1;
  }
  const auto back = decode_tuple(encode_tuple(cut)).value();
  ONCE_ASSERT(std::vector<std::string_view>(back.begin(), back.end()) == cut);
  return 0;
}
