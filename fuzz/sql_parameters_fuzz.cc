// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "config/statement.h"

// However a statement is written: it has one `?` for each name beyond those that were quoted, and
// nothing else in it has changed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace once;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto dialect : {SqlDialect::sqlite, SqlDialect::postgresql, SqlDialect::mysql}) {
    const auto named = name_parameters(text, dialect);
    if (!named) {
      ONCE_ASSERT(named.error().tag == "sql");
      continue;
    }
    std::size_t name_bytes = 0;
    for (const std::string& name : named->names) {
      ONCE_ASSERT(!name.empty());
      ONCE_ASSERT(text.find(":" + name) != std::string_view::npos);
      name_bytes += name.size();
    }
    const auto questions = [](std::string_view in) {
      return static_cast<std::size_t>(std::count(in.begin(), in.end(), '?'));
    };
    ONCE_ASSERT(questions(named->text) == questions(text) + named->names.size());
    // Each name left its place to the question mark that was a colon; a semicolon may be gone.
    ONCE_ASSERT(named->text.size() + name_bytes <= text.size());
  }
  return 0;
}
