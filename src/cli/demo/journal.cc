// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/journal.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace once::cli {

Result<Journal> Journal::open(const std::string& directory, const std::string& role,
                              std::int64_t number) {
  const std::string path = fmt::format("{}/journal/{}-{}.jsonl", directory, role, number);
  return Journal(ONCE_TRY(system_files().open(path, OpenMode::create)));
}

Status Journal::line(const Json& json) {
  const std::string text = line_of(json);
  const std::string_view part = text;
  ONCE_TRY(file_->write_at(offset_, std::span(&part, 1)));
  offset_ += static_cast<std::int64_t>(text.size());
  return {};
}

Result<std::vector<JournalPage>> read_journals(const std::string& directory) {
  std::vector<JournalPage> pages;
  for (const std::string& name : ONCE_TRY(system_files().list(directory + "/journal"))) {
    if (!name.ends_with(".jsonl")) continue;
    JournalPage page{name.substr(0, name.find_last_of('-')), {}};
    const std::string text =
        ONCE_TRY(read_file(system_files(), fmt::format("{}/journal/{}", directory, name)));
    std::size_t at = 0;
    for (std::size_t end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      Json json = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(at),
                              text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
      if (!json.is_discarded()) page.lines.push_back(std::move(json));
    }
    pages.push_back(std::move(page));
  }
  return pages;
}

}  // namespace once::cli
