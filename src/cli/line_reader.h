// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace once {
class File;
}  // namespace once

namespace once::cli {

// Lines of a file or of the standard input, in portions: what one read gives, so that lines that
// a person types do not wait for more. Used by one thread.
class LineReader {
 public:
  static constexpr std::size_t line_bytes_max = 16 << 20;

  // "-" is the standard input.
  static Result<LineReader> open(const std::string& path);
  LineReader(LineReader&&) noexcept;
  ~LineReader();

  // The next complete lines without their newlines, at most `count_max`; empty at the end. The
  // last line needs no newline. The views are valid until the next call.
  [[nodiscard]] Result<std::vector<std::string_view>> next(std::size_t count_max);

 private:
  explicit LineReader(std::unique_ptr<File> file);
  Result<std::size_t> read_more();

  std::unique_ptr<File> file_;  // nullptr: the standard input
  std::int64_t offset_ = 0;
  std::string buffer_;
  std::size_t used_ = 0;  // bytes of the buffer that were given out
  bool ended_ = false;
};

}  // namespace once::cli
