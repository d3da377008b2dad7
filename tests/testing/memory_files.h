// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/file.h"

namespace once::testing {

// A file system in memory for unit tests and fuzz targets. It forgets nothing and is easy to look
// into and to damage; with `refuse` a test makes single calls fail. Thread-safe.
class MemoryFiles final : public Files {
 public:
  using Content = std::shared_ptr<std::string>;

  // Asked before each call that changes something ("write", "sync", "resize", "create", "rename",
  // "remove", "sync_directory"); an error that it returns is the answer of the call.
  std::function<Status(const std::string& call, const std::string& path)> refuse;

  // Called before a file is opened to be read, without the lock: a test can make a disk slow.
  std::function<void(const std::string& path)> before_open;

  std::map<std::string, std::string> contents() const {
    const std::lock_guard lock(mutex_);
    std::map<std::string, std::string> copy;
    for (const auto& [path, content] : files_) copy.emplace(path, *content);
    return copy;
  }
  void set_contents(const std::map<std::string, std::string>& contents) {
    const std::lock_guard lock(mutex_);
    files_.clear();
    for (const auto& [path, content] : contents)
      files_.emplace(path, std::make_shared<std::string>(content));
  }
  std::string& content(const std::string& path) {
    const std::lock_guard lock(mutex_);
    return *files_.at(path);
  }

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    if (mode == OpenMode::create) ONCE_TRY(ask("create", path));
    if (mode == OpenMode::read && before_open) before_open(path);
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(path);
    if (mode == OpenMode::create && found != files_.end())
      return fail(error_from_errno(EEXIST, "open", path));
    if (mode != OpenMode::create && mode != OpenMode::lock && found == files_.end())
      return fail(error_from_errno(ENOENT, "open", path));
    if ((mode == OpenMode::lock || mode == OpenMode::ask_lock) && locks_[path].lock() != nullptr)
      return fail(Remedy::stop, "busy", path + " is held by another process");
    Content content = found != files_.end() ? found->second : nullptr;
    if (!content) content = files_[path] = std::make_shared<std::string>();
    auto file = std::make_unique<MemoryFile>(*this, path, content);
    if (mode == OpenMode::lock) locks_[path] = file->held = std::make_shared<int>(0);
    return file;
  }

  Result<std::vector<DirectoryEntry>> entries(const std::string& directory) override {
    const std::lock_guard lock(mutex_);
    using Kind = DirectoryEntry::Kind;
    std::map<std::string, Kind> found;
    const std::string prefix = directory + "/";
    for (auto at = files_.lower_bound(prefix); at != files_.end(); ++at) {
      if (at->first.compare(0, prefix.size(), prefix) != 0) break;
      const std::string rest = at->first.substr(prefix.size());
      const auto slash = rest.find('/');
      found[rest.substr(0, slash)] = slash == std::string::npos ? Kind::file : Kind::directory;
    }
    if (found.empty()) return fail(error_from_errno(ENOENT, "list", directory));
    std::vector<DirectoryEntry> entries;
    for (const auto& [name, kind] : found) entries.push_back({name, kind});
    return entries;
  }

  Status rename(const std::string& from, const std::string& to) override {
    ONCE_TRY(ask("rename", from));
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(from);
    if (found == files_.end()) return fail(error_from_errno(ENOENT, "rename", from));
    files_[to] = found->second;
    files_.erase(from);
    return {};
  }
  Status remove(const std::string& path) override {
    ONCE_TRY(ask("remove", path));
    const std::lock_guard lock(mutex_);
    files_.erase(path);
    return {};
  }
  Status sync_directory(const std::string& directory) override {
    return ask("sync_directory", directory);
  }

 private:
  class MemoryFile final : public File {
   public:
    MemoryFile(MemoryFiles& owner, std::string path, Content content)
        : owner_(owner), path_(std::move(path)), content_(std::move(content)) {}

    Result<std::size_t> read_at(std::int64_t offset, std::span<char> into) override {
      const std::lock_guard lock(owner_.mutex_);
      const auto from = static_cast<std::size_t>(offset);
      if (from >= content_->size()) return std::size_t{0};
      const std::size_t count = std::min(into.size(), content_->size() - from);
      std::memcpy(into.data(), content_->data() + from, count);
      return count;
    }
    Status write_at(std::int64_t offset, std::span<const std::string_view> parts) override {
      ONCE_TRY(owner_.ask("write", path_));
      const std::lock_guard lock(owner_.mutex_);
      auto at = static_cast<std::size_t>(offset);
      for (const std::string_view part : parts) {
        if (content_->size() < at + part.size()) content_->resize(at + part.size());
        content_->replace(at, part.size(), part);
        at += part.size();
      }
      return {};
    }
    Status sync() override { return owner_.ask("sync", path_); }
    Result<std::int64_t> size() override {
      const std::lock_guard lock(owner_.mutex_);
      return static_cast<std::int64_t>(content_->size());
    }
    Result<bool> is_in_place() override {
      const std::lock_guard lock(owner_.mutex_);
      const auto named = owner_.files_.find(path_);
      return named != owner_.files_.end() && named->second == content_;
    }
    Status resize(std::int64_t bytes) override {
      ONCE_TRY(owner_.ask("resize", path_));
      const std::lock_guard lock(owner_.mutex_);
      content_->resize(static_cast<std::size_t>(bytes));
      return {};
    }

    std::shared_ptr<int> held;

   private:
    MemoryFiles& owner_;
    std::string path_;
    Content content_;
  };

  Status ask(const std::string& call, const std::string& path) {
    return refuse ? refuse(call, path) : Status{};
  }

  mutable std::mutex mutex_;
  std::map<std::string, Content> files_;
  std::map<std::string, std::weak_ptr<int>> locks_;
};

}  // namespace once::testing
