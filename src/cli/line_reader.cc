// SPDX-License-Identifier: Apache-2.0
#include "cli/line_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

#include "base/file.h"
#include "cli/exit_code.h"

namespace once::cli {

LineReader::LineReader(std::unique_ptr<File> file) : file_(std::move(file)) {}
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader::~LineReader() = default;

Result<LineReader> LineReader::open(const std::string& path) {
  if (path == "-") return LineReader(nullptr);
  return LineReader(ONCE_TRY(system_files().open(path, OpenMode::read)));
}

Result<std::size_t> LineReader::read_more() {
  constexpr std::size_t portion_bytes = 256 << 10;
  const std::size_t old = buffer_.size();
  buffer_.resize(old + portion_bytes);
  const std::span<char> into(buffer_.data() + old, portion_bytes);
  std::size_t got = 0;
  if (file_) {
    got = ONCE_TRY(file_->read_at(offset_, into));
    offset_ += static_cast<std::int64_t>(got);
  } else {
    ssize_t answer = 0;
    do answer = ::read(STDIN_FILENO, into.data(), into.size());
    while (answer < 0 && errno == EINTR);
    if (answer < 0) return fail(error_from_errno(errno, "read", "the standard input"));
    got = static_cast<std::size_t>(answer);
  }
  buffer_.resize(old + got);
  return got;
}

Result<std::vector<std::string_view>> LineReader::next(std::size_t count_max) {
  buffer_.erase(0, used_);
  used_ = 0;
  std::size_t searched = 0;
  while (!ended_ && buffer_.find('\n', searched) == std::string::npos) {
    searched = buffer_.size();
    if (buffer_.size() > line_bytes_max)
      return fail_input(fmt::format("a line is longer than {} bytes", line_bytes_max));
    ended_ = ONCE_TRY(read_more()) == 0;
  }
  std::vector<std::string_view> lines;
  const std::string_view text = buffer_;
  while (lines.size() < count_max && used_ < text.size()) {
    const auto newline = text.find('\n', used_);
    if (newline == std::string_view::npos && !ended_) break;
    const std::string_view line = text.substr(used_, newline - used_);
    used_ += line.size() + (newline == std::string_view::npos ? 0 : 1);
    lines.push_back(line);
  }
  return lines;
}

}  // namespace once::cli
