// SPDX-License-Identifier: Apache-2.0
#include "raw_log.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <utility>

#include "harness.h"

namespace once::bench {
namespace {

constexpr std::int64_t reserve_bytes = 4 << 20;  // as much as our log asks for at a time

}  // namespace

RawLog::RawLog(const std::string& path)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (file_ < 0) give_up("cannot make " + path);
}

RawLog::~RawLog() { ::close(file_); }

void RawLog::append(std::string_view group) {
  const auto bytes = static_cast<std::int64_t>(group.size());
  while (end_ + bytes > reserved_) {
    if (::posix_fallocate(file_, reserved_, reserve_bytes) != 0) give_up("the disk is full");
    reserved_ += reserve_bytes;
  }
  const iovec part{const_cast<char*>(group.data()), group.size()};
  if (::pwritev(file_, &part, 1, end_) != bytes || ::fdatasync(file_) != 0)
    give_up("the raw log could not be written");
  end_ += bytes;
}

void RawGroupLog::append(std::string_view bytes) {
  std::unique_lock lock(mutex_);
  pending_ += bytes;
  const std::uint64_t mine = group_;
  landed_.wait(lock, [&] { return landed_group_ >= mine || !writing_; });
  if (landed_group_ >= mine) return;
  writing_ = true;
  ++group_;
  const std::string group = std::move(pending_);
  pending_.clear();
  lock.unlock();
  log_.append(group);
  lock.lock();
  writing_ = false;
  landed_group_ = mine;
  landed_.notify_all();
}

}  // namespace once::bench
