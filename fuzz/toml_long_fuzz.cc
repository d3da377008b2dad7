// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "config/plan.h"

// Long texts from short inputs: a byte says how often the piece behind it is repeated, up to half a
// million bytes of it. Whatever is repeated, no recursion of the parser goes too deep.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace once;
  constexpr std::size_t piece_bytes_max = 1 << 19;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  std::string text;
  while (!input.empty() && text.size() < plan_bytes_max) {
    const auto repeats = std::size_t{1} << (static_cast<unsigned char>(input[0]) % 18);
    input.remove_prefix(1);
    const std::string_view piece = input.substr(0, input.find('\x01'));
    input.remove_prefix(std::min(input.size(), piece.size() + 1));
    for (std::size_t i = 0; i < repeats && (i + 1) * piece.size() <= piece_bytes_max; ++i)
      text += piece;
  }
  const auto nothing = [](const std::string&) -> std::optional<std::string> {
    return std::nullopt;
  };
  const auto plans = parse_plans(text, "f", nothing);
  if (!plans) ONCE_ASSERT(plans.error().tag == "config" && plans.error().remedy == Remedy::stop);
  return 0;
}
