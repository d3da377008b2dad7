// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <once/claims.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

namespace once {

// Something outside every store: a file with a line for each payment, durable when it is answered.
// It is read anew each time, as if it were on another machine.
class FileBank {
 public:
  FileBank(std::string path, bool tells_duplicates)
      : path_(std::move(path)), tells_duplicates_(tells_duplicates) {}

  Result<std::string> pay(const std::string& downstream_id, std::string_view what) const {
    if (tells_duplicates_ && knows(downstream_id)) return std::string("paid before");
    const std::string line = fmt::format("{} {}\n", downstream_id, what);
    const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    const bool written =
        file >= 0 && ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
        ::fdatasync(file) == 0;
    if (file >= 0) ::close(file);
    if (!written) return fail(Remedy::recheck, "bank", path_ + ": the payment was not written");
    return std::string("paid");
  }

  Resolution ask(const std::string& downstream_id) const {
    if (knows(downstream_id)) return {Resolution::Kind::happened, "paid"};
    return {Resolution::Kind::did_not_happen, {}};
  }

 private:
  bool knows(const std::string& downstream_id) const {
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);)
      if (line.starts_with(downstream_id)) return true;
    return false;
  }

  const std::string path_;
  const bool tells_duplicates_;
};

}  // namespace once
