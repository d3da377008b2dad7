// SPDX-License-Identifier: Apache-2.0
#include "audit/sighting.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <queue>
#include <type_traits>
#include <utility>

#include "base/file.h"

namespace once::audit {
namespace {

static_assert(std::is_trivially_copyable_v<Sighting> && sizeof(Sighting) == 32);

constexpr std::size_t runs_max = 512;  // open files, each with a buffer

Error io_error(std::string_view what, const std::string& directory) {
  return error_from_errno(errno != 0 ? errno : EIO, what, "a temporary file in " + directory);
}

Result<std::optional<Sighting>> next_of(std::FILE* run, const std::string& directory) {
  Sighting sighting;
  errno = 0;
  if (std::fread(&sighting, sizeof sighting, 1, run) == 1) return sighting;
  if (std::ferror(run) != 0) return fail(io_error("read", directory));
  return std::nullopt;
}

}  // namespace

SightingSorter::SightingSorter(std::string directory, std::size_t bytes_max)
    : directory_(std::move(directory)),
      count_max_(std::max<std::size_t>(1, bytes_max / sizeof(Sighting))) {}

Status SightingSorter::add(const Sighting& sighting) {
  if (present_.size() == count_max_) ONCE_TRY(spill());
  present_.push_back(sighting);
  return {};
}

Status SightingSorter::spill() {
  if (runs_.size() == runs_max)
    return fail(Remedy::stop, "exhausted",
                fmt::format("the audit needs more than {} temporary files; give it more --memory",
                            runs_max));
  std::sort(present_.begin(), present_.end());
  std::string name = directory_ + "/once-audit-XXXXXX";
  errno = 0;
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) return fail(io_error("make", directory_));
  ::unlink(name.c_str());  // the file stays as long as it is open
  File run(::fdopen(descriptor, "w+b"));
  if (run == nullptr) return fail(io_error("open", directory_));
  if (std::fwrite(present_.data(), sizeof(Sighting), present_.size(), run.get()) !=
          present_.size() ||
      std::fflush(run.get()) != 0)
    return fail(io_error("write", directory_));
  std::rewind(run.get());
  runs_.push_back(std::move(run));
  present_.clear();
  return {};
}

Status SightingSorter::visit(const std::function<void(const Sighting&)>& take) {
  if (!runs_.empty()) {
    if (!present_.empty()) ONCE_TRY(spill());
    present_.shrink_to_fit();
    return merge(take);
  }
  std::sort(present_.begin(), present_.end());
  for (const Sighting& sighting : present_) take(sighting);
  present_.clear();
  return {};
}

Status SightingSorter::merge(const std::function<void(const Sighting&)>& take) {
  using Head = std::pair<Sighting, std::size_t>;  // the least of a run
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  const auto advance = [&](std::size_t run) -> Status {
    if (const auto next = ONCE_TRY(next_of(runs_[run].get(), directory_))) heads.push({*next, run});
    return {};
  };
  for (std::size_t run = 0; run < runs_.size(); ++run) ONCE_TRY(advance(run));
  while (!heads.empty()) {
    const Head head = heads.top();
    heads.pop();
    take(head.first);
    ONCE_TRY(advance(head.second));
  }
  runs_.clear();
  return {};
}

}  // namespace once::audit
