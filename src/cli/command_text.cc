// SPDX-License-Identifier: Apache-2.0
#include "cli/command_text.h"

namespace once::cli {
namespace {

void add_all_of(const CommandText& command, std::vector<const CommandText*>& found) {
  found.push_back(&command);
  for (const CommandText& below : command.commands) add_all_of(below, found);
}

}  // namespace

std::vector<const CommandText*> all_of(const CommandText& command) {
  std::vector<const CommandText*> found;
  add_all_of(command, found);
  return found;
}

}  // namespace once::cli
