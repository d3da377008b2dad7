// SPDX-License-Identifier: Apache-2.0
#include "testing/sim_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/failpoint.h"

namespace once::testing {
namespace {

std::string clean(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.size() > 2 && path.ends_with("/.")) return clean(path.substr(0, path.size() - 2));
  return path;
}

tl::unexpected<Error> fail_errno(int number, std::string_view what, const std::string& path) {
  return fail(error_from_errno(number, what, path));
}

bool is_root(const std::string& path) { return path.empty() || path == "." || path == "/"; }

void write_into(std::string& content, std::size_t offset, std::string_view bytes) {
  if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size(), '\0');
  content.replace(offset, bytes.size(), bytes);
}

}  // namespace

SimDisk::SimDisk(std::uint64_t seed) : random_(seed) {}
SimDisk::~SimDisk() = default;

void SimDisk::apply(const NameChange& change, Names& names) {
  if (!change.from.empty()) {
    const auto old = names.find(change.from);
    if (old != names.end() && old->second == change.inode) names.erase(old);
  }
  if (change.inode)
    names[change.path] = change.inode;
  else
    names.erase(change.path);
}

void SimDisk::apply(const Change& change, std::string& content) {
  if (change.resize)
    content.resize(static_cast<std::size_t>(change.offset), '\0');
  else
    write_into(content, static_cast<std::size_t>(change.offset), change.bytes);
}

void SimDisk::change_name(NameChange change) {
  apply(change, names_);
  unsynced_names_[parent_directory(change.path)].push_back(std::move(change));
}

// Each directory keeps a prefix of what was not synced, as a journal would, or any subset of it.
void SimDisk::cut_names() {
  for (auto& [directory, changes] : unsynced_names_) {
    const std::size_t kept = random_.below(changes.size() + 1);
    const bool subset = random_.chance(300);
    for (std::size_t i = 0; i < changes.size(); ++i)
      if (subset ? random_.chance(500) : i < kept) apply(changes[i], durable_names_);
  }
  unsynced_names_.clear();
  // A name whose directory is gone cannot be reached.
  Names reachable;
  for (const auto& [path, inode] : durable_names_) {
    const std::string parent = parent_directory(path);
    if (is_root(parent) || reachable.count(parent) > 0) reachable[path] = inode;
  }
  durable_names_ = reachable;
}

void SimDisk::keep_sectors(const Change& change, std::uint32_t per_thousand, std::string& content) {
  if (change.resize) {
    if (random_.chance(per_thousand)) apply(change, content);
    return;
  }
  std::size_t done = 0;
  while (done < change.bytes.size()) {
    const std::size_t at = static_cast<std::size_t>(change.offset) + done;
    const std::size_t length =
        std::min(change.bytes.size() - done, sector_bytes - at % sector_bytes);
    if (random_.chance(per_thousand))
      write_into(content, at, std::string_view(change.bytes).substr(done, length));
    done += length;
  }
}

void SimDisk::cut_file(Inode& inode) {
  std::string content = inode.durable;
  const std::size_t kept = random_.below(inode.unsynced.size() + 1);
  switch (random_.below(5)) {
    case 0: break;  // all lost
    case 1:         // all there
      content = inode.current;
      break;
    case 2:  // a prefix, the last write torn between two sectors
    case 3:
      for (std::size_t i = 0; i < kept; ++i) {
        if (i + 1 < kept || inode.unsynced[i].resize || random_.chance(300)) {
          apply(inode.unsynced[i], content);
          continue;
        }
        Change torn = inode.unsynced[i];
        const std::size_t end = static_cast<std::size_t>(torn.offset) + torn.bytes.size();
        const std::size_t first = static_cast<std::size_t>(torn.offset) / sector_bytes;
        const std::size_t cut =
            (first + random_.below(end / sector_bytes - first + 1)) * sector_bytes;
        const auto begin = static_cast<std::size_t>(torn.offset);
        torn.bytes.resize(cut > begin ? cut - begin : 0);
        apply(torn, content);
      }
      break;
    default: {  // the disk wrote in its own order
      const auto share = static_cast<std::uint32_t>(100 + random_.below(800));
      for (const Change& change : inode.unsynced) keep_sectors(change, share, content);
    }
  }
  // The length is metadata of its own: it may be there without the bytes.
  if (random_.chance(200) && content.size() < inode.current.size())
    content.resize(inode.current.size(), '\0');
  inode.durable = inode.current = std::move(content);
  inode.unsynced.clear();
}

void SimDisk::power_cut() {
  ++generation_;
  cut_names();
  names_ = durable_names_;
  for (const auto& [path, inode] : names_) {
    inode->locked_by = nullptr;
    if (!inode->directory) cut_file(*inode);
  }
}

bool SimDisk::flip_bit(const std::string& path, std::int64_t bit) {
  const auto found = names_.find(clean(path));
  if (found == names_.end() || bit < 0) return false;
  const auto at = static_cast<std::size_t>(bit / 8);
  const auto mask = static_cast<char>(1 << (bit % 8));
  Inode& inode = *found->second;
  if (at >= inode.current.size()) return false;
  inode.current[at] = static_cast<char>(inode.current[at] ^ mask);
  if (at < inode.durable.size()) inode.durable[at] = static_cast<char>(inode.durable[at] ^ mask);
  return true;
}

std::int64_t SimDisk::used_bytes() const {
  std::int64_t sum = 0;
  for (const auto& [path, inode] : names_) sum += static_cast<std::int64_t>(inode->current.size());
  return sum;
}

std::optional<std::string> SimDisk::durable(const std::string& path) const {
  const auto found = durable_names_.find(clean(path));
  if (found == durable_names_.end() || found->second->directory) return std::nullopt;
  return found->second->durable;
}

std::vector<std::string> SimDisk::paths() const {
  std::vector<std::string> paths;
  for (const auto& [path, inode] : names_)
    if (!inode->directory) paths.push_back(path);
  return paths;
}

Status SimDisk::make_directories(const std::string& path) {
  if (is_root(path)) return {};
  const auto found = names_.find(path);
  if (found != names_.end()) {
    if (found->second->directory) return {};
    return fail_errno(ENOTDIR, "make directory", path);
  }
  ONCE_TRY(make_directories(parent_directory(path)));
  auto inode = std::make_shared<Inode>();
  inode->directory = true;
  change_name({path, "", std::move(inode)});
  return {};
}

bool SimDisk::has_children(const std::string& path) const {
  const auto next = names_.upper_bound(path + "/");
  return next != names_.end() && next->first.starts_with(path + "/");
}

// A file as one process has it open. It outlives neither its process nor a power cut.
class SimFile final : public File {
 public:
  SimFile(SimFiles& process, std::shared_ptr<SimDisk::Inode> inode, std::string path, bool writable)
      : process_(process), inode_(std::move(inode)), path_(std::move(path)), writable_(writable) {}

  ~SimFile() override {
    if (locks_ && process_.alive()) inode_->locked_by = nullptr;
  }
  void locks() { locks_ = true; }

  Result<std::size_t> read_at(std::int64_t offset, std::span<char> into) override {
    ONCE_TRY(process_.begin_read(path_));
    const auto at = static_cast<std::size_t>(offset);
    if (at >= inode_->current.size()) return std::size_t{0};
    const std::size_t count = std::min(into.size(), inode_->current.size() - at);
    std::memcpy(into.data(), inode_->current.data() + at, count);
    return count;
  }

  Status write_at(std::int64_t offset, std::span<const std::string_view> parts) override {
    std::string bytes;
    for (const std::string_view part : parts) bytes += part;
    if (!writable_) return fail_errno(EBADF, "write", path_);
    if (process_.dies_now()) {  // in the middle of it
      bytes.resize(process_.disk_.random_.below(bytes.size() + 1));
      write(offset, std::move(bytes));
      process_.die();
    }
    ONCE_TRY(process_.begin_change(path_));
    const std::int64_t room = room_for(offset + static_cast<std::int64_t>(bytes.size()));
    if (room < 0) {
      const auto size = static_cast<std::int64_t>(bytes.size());
      bytes.resize(static_cast<std::size_t>(std::max<std::int64_t>(0, size + room)));
      write(offset, std::move(bytes));
      return fail_errno(ENOSPC, "write", path_);
    }
    write(offset, std::move(bytes));
    return {};
  }

  Status sync() override {
    ONCE_TRY(process_.begin_change(path_));
    if (std::exchange(process_.disk_.fail_next_sync_, false)) {
      // The kernel forgets that the pages are dirty; they may still be read for a while.
      inode_->unsynced.clear();
      if (process_.disk_.random_.chance(500)) inode_->current = inode_->durable;
      return fail_errno(EIO, "sync", path_);
    }
    for (const SimDisk::Change& change : inode_->unsynced) SimDisk::apply(change, inode_->durable);
    inode_->unsynced.clear();
    return {};
  }

  Result<std::int64_t> size() override {
    ONCE_TRY(process_.begin_read(path_));
    return static_cast<std::int64_t>(inode_->current.size());
  }

  Status resize(std::int64_t bytes) override {
    if (!writable_) return fail_errno(EBADF, "cut", path_);
    ONCE_TRY(process_.begin_change(path_));
    if (room_for(bytes) < 0) return fail_errno(ENOSPC, "extend", path_);
    SimDisk::Change change{bytes, {}, true};
    SimDisk::apply(change, inode_->current);
    inode_->unsynced.push_back(std::move(change));
    return {};
  }

 private:
  void write(std::int64_t offset, std::string bytes) {
    if (bytes.empty()) return;
    SimDisk::Change change{offset, std::move(bytes), false};
    SimDisk::apply(change, inode_->current);
    inode_->unsynced.push_back(std::move(change));
  }

  // How many bytes are left if the file grows to `end`; negative: that many too few.
  std::int64_t room_for(std::int64_t end) const {
    const SimDisk& disk = process_.disk_;
    const std::int64_t more = end - static_cast<std::int64_t>(inode_->current.size());
    if (disk.space_bytes_max_ < 0 || more <= 0) return 0;
    return disk.space_bytes_max_ - disk.used_bytes() - more;
  }

  SimFiles& process_;
  std::shared_ptr<SimDisk::Inode> inode_;
  std::string path_;
  bool writable_;
  bool locks_ = false;
};

SimFiles::SimFiles(SimDisk& disk) : disk_(disk), generation_(disk.generation_) {}
SimFiles::~SimFiles() { kill(); }

bool SimFiles::alive() const { return !killed_ && generation_ == disk_.generation_; }

void SimFiles::kill() {
  if (alive())
    for (const auto& [path, inode] : disk_.names_)
      if (inode->locked_by == this) inode->locked_by = nullptr;
  killed_ = true;
}

void SimFiles::die() {
  kill();
  throw SimulatedDeath();
}

bool SimFiles::dies_now() {
  if (!alive() || changes_left_ != 1) return false;
  changes_left_ = 0;
  return true;
}

Status SimFiles::begin_read(const std::string& path) const {
  if (!alive()) return fail(Remedy::stop, "dead", "a dead process touches " + path);
  return {};
}

Status SimFiles::begin_change(const std::string& path) {
  ONCE_TRY(begin_read(path));
  if (dies_now()) die();
  if (changes_left_ > 0) --changes_left_;
  ++disk_.operations_;
  return {};
}

Result<std::unique_ptr<File>> SimFiles::open(const std::string& name, OpenMode mode) {
  const std::string path = clean(name);
  const bool makes = mode == OpenMode::create || mode == OpenMode::lock;
  const auto found = disk_.names_.find(path);
  std::shared_ptr<SimDisk::Inode> inode = found == disk_.names_.end() ? nullptr : found->second;
  if (!inode && makes) {
    ONCE_TRY(begin_change(path));
    ONCE_TRY(disk_.make_directories(parent_directory(path)));
    inode = std::make_shared<SimDisk::Inode>();
    disk_.change_name({path, "", inode});
  } else {
    ONCE_TRY(begin_read(path));
    if (!inode) return fail_errno(ENOENT, "open", path);
    if (mode == OpenMode::create) return fail_errno(EEXIST, "open", path);
    if (inode->directory) return fail_errno(EISDIR, "open", path);
  }
  if ((mode == OpenMode::lock || mode == OpenMode::ask_lock) && inode->locked_by != nullptr)
    return fail(Remedy::stop, "busy", path + " is held by another process");
  if (mode == OpenMode::lock) inode->locked_by = this;
  auto file = std::make_unique<SimFile>(*this, std::move(inode), path,
                                        mode != OpenMode::read && mode != OpenMode::ask_lock);
  if (mode == OpenMode::lock) file->locks();
  return file;
}

Result<std::vector<DirectoryEntry>> SimFiles::entries(const std::string& name) {
  const std::string directory = clean(name);
  ONCE_TRY(begin_read(directory));
  const auto found = disk_.names_.find(directory);
  if (!is_root(directory) && (found == disk_.names_.end() || !found->second->directory))
    return fail_errno(ENOENT, "list", directory);
  using Kind = DirectoryEntry::Kind;
  std::vector<DirectoryEntry> entries;
  for (const auto& [path, inode] : disk_.names_)
    if (parent_directory(path) == directory)
      entries.push_back(
          {path.substr(path.rfind('/') + 1), inode->directory ? Kind::directory : Kind::file});
  return entries;
}

Status SimFiles::rename(const std::string& from_name, const std::string& to_name) {
  const std::string from = clean(from_name);
  const std::string to = clean(to_name);
  ONCE_TRY(begin_change(from));
  const auto found = disk_.names_.find(from);
  if (found == disk_.names_.end()) return fail_errno(ENOENT, "rename", from);
  const std::shared_ptr<SimDisk::Inode> inode = found->second;
  if (inode->directory) {  // its children move with it
    std::vector<std::pair<std::string, std::shared_ptr<SimDisk::Inode>>> children;
    for (auto at = disk_.names_.upper_bound(from + "/");
         at != disk_.names_.end() && at->first.starts_with(from + "/"); ++at)
      children.emplace_back(at->first, at->second);
    disk_.change_name({to, from, inode});
    for (const auto& [path, child] : children)
      disk_.change_name({to + path.substr(from.size()), path, child});
    return {};
  }
  disk_.change_name({to, from, inode});
  return {};
}

Status SimFiles::remove(const std::string& name) {
  const std::string path = clean(name);
  ONCE_TRY(begin_change(path));
  const auto found = disk_.names_.find(path);
  if (found == disk_.names_.end()) return {};
  if (found->second->directory && disk_.has_children(path))
    return fail_errno(ENOTEMPTY, "remove", path);
  disk_.change_name({path, "", nullptr});
  return {};
}

Status SimFiles::sync_directory(const std::string& name) {
  const std::string directory = clean(name);
  ONCE_TRY(begin_change(directory));
  if (!is_root(directory) && disk_.names_.count(directory) == 0)
    return fail_errno(ENOENT, "open", directory);
  for (const SimDisk::NameChange& change : disk_.unsynced_names_[directory])
    SimDisk::apply(change, disk_.durable_names_);
  disk_.unsynced_names_.erase(directory);
  return {};
}

}  // namespace once::testing
