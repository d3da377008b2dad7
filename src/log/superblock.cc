// SPDX-License-Identifier: Apache-2.0
#include "log/superblock.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "log/bytes.h"
#include "log/frame.h"

namespace once::log {
namespace {

constexpr std::uint64_t superblock_magic = 0x4f4e43452d535550;  // "ONCE-SUP"
constexpr std::uint64_t watermark_magic = 0x4f4e43452d454e44;   // "ONCE-END"
constexpr std::size_t copy_bytes = 64;
constexpr std::int64_t copy_distance_bytes = 4096;
constexpr std::size_t copy_crc_at = 60;
constexpr std::size_t slot_bytes = 48;
constexpr std::int64_t slot_distance_bytes = 512;
constexpr std::size_t slot_crc_at = 44;

std::string path_of(const std::string& directory) { return directory + "/superblock"; }

using Copy = std::array<char, copy_bytes>;

Copy encode(const Superblock& superblock) {
  Copy copy{};
  char* at = copy.data();
  put_u64(at, superblock_magic);
  put_u32(at + 8, format_version);
  put_u64(at + 16, superblock.generation);
  put_u64(at + 24, superblock.log_id);
  put_u64(at + 32, superblock.durable.address);
  put_i64(at + 40, superblock.durable.offset);
  put_i64(at + 48, superblock.first_offset);
  put_u32(at + copy_crc_at, crc32c({at, copy_crc_at}));
  return copy;
}

struct Decoded {
  bool good = false;
  std::uint32_t version = 0;
  Superblock superblock;
};

Decoded decode(std::string_view copy) {
  Decoded decoded;
  if (copy.size() < copy_bytes) return decoded;
  const char* at = copy.data();
  if (get_u64(at) != superblock_magic || get_u32(at + copy_crc_at) != crc32c({at, copy_crc_at}))
    return decoded;
  decoded.good = true;
  decoded.version = get_u32(at + 8);
  decoded.superblock.generation = get_u64(at + 16);
  decoded.superblock.log_id = get_u64(at + 24);
  decoded.superblock.durable = {get_u64(at + 32), get_i64(at + 40)};
  decoded.superblock.first_offset = get_i64(at + 48);
  return decoded;
}

}  // namespace

Result<Superblock> read_superblock(Files& files, const std::string& directory) {
  const std::string path = path_of(directory);
  const std::string content = ONCE_TRY(read_file(files, path));
  Decoded best;
  for (const auto position : {std::size_t{0}, static_cast<std::size_t>(copy_distance_bytes)}) {
    if (position > content.size()) continue;
    const Decoded copy = decode(std::string_view(content).substr(position));
    if (copy.good && (!best.good || copy.superblock.generation > best.superblock.generation))
      best = copy;
  }
  if (!best.good)
    return fail(Remedy::stop, "corrupt",
                fmt::format("{}: both copies are damaged, so it is not known which log this is; "
                            "restore the file, the segments beside it were not touched",
                            path));
  if (best.version != format_version)
    return fail(Remedy::stop, "version",
                fmt::format("{} has version {}, this program knows version {}", path, best.version,
                            format_version));
  return best.superblock;
}

Status create_superblock(Files& files, const std::string& directory, const Superblock& superblock) {
  const Copy copy = encode(superblock);
  std::string content(copy.data(), copy.size());
  content.resize(static_cast<std::size_t>(copy_distance_bytes), '\0');
  content.append(copy.data(), copy.size());
  return replace_file(files, path_of(directory), content);
}

// The worse copy first: after a crash in the middle of an earlier update it is damaged, and the
// other one is all there is.
Status update_superblock(Files& files, const std::string& directory, const Superblock& superblock) {
  auto file = ONCE_TRY(files.open(path_of(directory), OpenMode::write));
  std::array<std::int64_t, 2> positions{0, copy_distance_bytes};
  std::array<Decoded, 2> found;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    Copy old{};
    if (ONCE_TRY(file->read_at(positions[i], old)) == old.size())
      found[i] = decode({old.data(), old.size()});
  }
  if (found[0].good &&
      (!found[1].good || found[0].superblock.generation >= found[1].superblock.generation))
    std::swap(positions[0], positions[1]);
  const Copy copy = encode(superblock);
  const std::string_view view(copy.data(), copy.size());
  for (const std::int64_t position : positions) {
    ONCE_TRY(file->write_at(position, std::span(&view, 1)));
    ONCE_TRY(file->sync());
  }
  return {};
}

Result<std::unique_ptr<Watermark>> Watermark::open_to_write(Files& files,
                                                            const std::string& directory,
                                                            std::uint64_t log_id) {
  const std::string path = directory + "/watermark";
  auto file = files.open(path, OpenMode::write);
  if (!file && file.error().tag == "missing") file = files.open(path, OpenMode::create);
  if (!file) return fail(std::move(file).error());
  return std::unique_ptr<Watermark>(new Watermark(std::move(*file), log_id));
}

Result<std::unique_ptr<Watermark>> Watermark::open_to_read(Files& files,
                                                           const std::string& directory,
                                                           std::uint64_t log_id) {
  auto file = ONCE_TRY(files.open(directory + "/watermark", OpenMode::read));
  return std::unique_ptr<Watermark>(new Watermark(std::move(file), log_id));
}

Status Watermark::publish(const Told& told) {
  ++generation_;
  std::array<char, slot_bytes> slot{};
  char* at = slot.data();
  put_u64(at, watermark_magic);
  put_u64(at + 8, log_id_);
  put_u64(at + 16, generation_);
  put_u64(at + 24, told.end.address);
  put_i64(at + 32, told.end.offset);
  put_u32(at + 40, told.is_writing ? 1 : 0);
  put_u32(at + slot_crc_at, crc32c({at, slot_crc_at}));
  const std::string_view view(slot.data(), slot.size());
  const auto position = static_cast<std::int64_t>(generation_ % 2) * slot_distance_bytes;
  return file_->write_at(position, std::span(&view, 1));
}

std::optional<Told> Watermark::read() {
  std::array<char, slot_distance_bytes + slot_bytes> content{};
  const auto got = file_->read_at(0, content);
  if (!got) return std::nullopt;
  std::optional<Told> best;
  std::uint64_t best_generation = 0;
  for (const std::size_t position : {std::size_t{0}, std::size_t{slot_distance_bytes}}) {
    const char* at = content.data() + position;
    if (position + slot_bytes > *got || get_u64(at) != watermark_magic) continue;
    if (get_u64(at + 8) != log_id_) continue;
    if (get_u32(at + slot_crc_at) != crc32c({at, slot_crc_at})) continue;
    // The larger end first, then the larger generation: a writer that opened again counts from one.
    const Told told{{get_u64(at + 24), get_i64(at + 32)}, get_u32(at + 40) != 0};
    const std::uint64_t generation = get_u64(at + 16);
    if (best && told.end.address < best->end.address) continue;
    if (best && told.end.address == best->end.address && generation < best_generation) continue;
    best = told;
    best_generation = generation;
  }
  return best;
}

}  // namespace once::log
