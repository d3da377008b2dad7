// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "wire/pulsar/command.h"

// What a broker sends is cut into frames and understood, or refused; views stay inside the frame,
// and no frame is larger than was agreed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace once::pulsar;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t most = 4096;
  FrameCutter cutter(most);
  for (std::size_t at = 0; at < input.size(); at += 7) {
    cutter.feed(input.substr(at, 7));
    while (true) {
      const auto frame = cutter.next();
      if (!frame) return 0;
      if (!*frame) break;
      ONCE_ASSERT((*frame)->size() <= most);
      const auto command = read_command(**frame);
      if (!command || !*command) continue;
      const std::string_view whole = **frame;
      const auto is_inside = [&](std::string_view view) {
        return view.data() == nullptr || (view.data() >= whole.data() &&
                                          view.data() + view.size() <= whole.data() + whole.size());
      };
      ONCE_ASSERT(is_inside((*command)->text) && is_inside((*command)->url));
      ONCE_ASSERT(is_inside((*command)->metadata) && is_inside((*command)->payload));
    }
  }
  return 0;
}
