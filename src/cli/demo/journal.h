// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/output.h"

namespace once::cli {

// What a child of the demo saw, one JSON object per line, in a file of its own:
// DIR/journal/ROLE-NUMBER.jsonl. A line survives the SIGKILL of its writer, not a power cut: it is
// evidence for the audit, and nothing that Once relies on. Used by one thread.
class Journal {
 public:
  static Result<Journal> open(const std::string& directory, const std::string& role,
                              std::int64_t number);
  [[nodiscard]] Status line(const Json& json);

 private:
  explicit Journal(std::unique_ptr<File> file) : file_(std::move(file)) {}

  std::unique_ptr<File> file_;
  std::int64_t offset_ = 0;
};

struct JournalPage {
  std::string role;
  std::vector<Json> lines;
};

// All journals, one page per process, in the order of their file names. The last line of a
// process that was killed may be cut; it is left out.
Result<std::vector<JournalPage>> read_journals(const std::string& directory);

}  // namespace once::cli
