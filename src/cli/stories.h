// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace once::cli {

// A file of examples/run, as it was when this program was built.
struct StoryFile {
  std::string_view name;  // "points.toml"
  std::string_view text;
};

// Sorted by name. Made by CMakeLists.txt.
std::span<const StoryFile> story_files();

}  // namespace once::cli
