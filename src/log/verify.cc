// SPDX-License-Identifier: Apache-2.0
#include "log/verify.h"

#include <fmt/format.h>

#include "log/layout.h"
#include "log/producer_table.h"
#include "log/record_batch.h"
#include "log/segment.h"
#include "log/superblock.h"

namespace once::log {
namespace {

tl::unexpected<Error> damage(const std::string& path, std::int64_t position, std::string what) {
  return fail(Remedy::stop, "corrupt", fmt::format("{} at byte {}: {}", path, position, what));
}

class Verification {
 public:
  Verification(Files& files, const std::string& directory) : files_(files), directory_(directory) {}

  Result<Verified> run() {
    const Layout layout = ONCE_TRY(read_layout(files_, directory_));
    superblock_ = layout.superblock;
    durable_ = layout.durable_address();
    result_.first_offset = superblock_.first_offset;
    expected_ = {superblock_.log_id, 0, superblock_.first_offset};
    for (const std::int64_t segment : layout.segments)
      ONCE_TRY(verify_segment(segment, segment == layout.segments.back()));
    if (expected_.address < durable_)
      return fail(Remedy::stop, "corrupt",
                  fmt::format("{} ends {} bytes before what was durable", directory_,
                              durable_ - expected_.address));
    result_.end_offset = expected_.offset;
    return result_;
  }

 private:
  Status verify_segment(std::int64_t base_offset, bool is_last) {
    const std::string path = segment_path(directory_, base_offset);
    auto file = ONCE_TRY(files_.open(path, OpenMode::read));
    const Found first = ONCE_TRY(read_first_frame(*file, superblock_.log_id, base_offset));
    if (first.flaw != Flaw::none) {
      if (is_last && result_.segments > 0 && durable_ <= expected_.address) return {};
      return damage(path, 0, fmt::format("the first frame is {}", name_of(first.flaw)));
    }
    // Addresses may be missing where an older version rolled twice, but no message.
    if (base_offset != expected_.offset || first.header.address < expected_.address)
      return damage(path, 0, "it does not continue the segment before it");
    is_whole_ = result_.segments > 0 && first.header.address == expected_.address;
    ++result_.segments;
    FrameWalker walker(*file, 0, {superblock_.log_id, first.header.address, base_offset},
                       Depth::bodies);
    for (;;) {
      const Found found = ONCE_TRY(walker.next());
      expected_ = walker.expected();
      if (found.flaw != Flaw::none) {
        if (found.flaw == Flaw::end || (is_last && durable_ <= expected_.address)) return {};
        return damage(path, found.position, fmt::format("the frame is {}", name_of(found.flaw)));
      }
      ONCE_TRY(verify_frame(path, found));
    }
  }

  Status verify_frame(const std::string& path, const Found& found) {
    ++result_.frames;
    if (found.header.kind == FrameKind::snapshot) {
      const auto snapshot =
          ProducerTable::decode(found.body, found.header.version, found.header.base_offset);
      if (!snapshot) return damage(path, found.position, snapshot.error().text);
      if (is_whole_ && !snapshot->continues(table_))
        return damage(path, found.position, "the producers are not those of the frames before");
    }
    if (!apply_frame(found.header, found.body, table_))
      return damage(path, found.position, "the frame contradicts those before it");
    if (found.header.kind != FrameKind::data) return {};
    const auto header = decode_batch_header(found.body);
    if (!header) return damage(path, found.position, header.error().text);
    if (header->count != found.header.record_count ||
        header->base_offset != found.header.base_offset)
      return damage(path, found.position, "the batch does not match its frame");
    result_.messages += header->count;
    if (header->is_compressed()) return {};  // its checksum is right, and it cannot be opened
    Deliveries deliveries;
    if (auto decoded = decode_batch(found.body, found.header.stamp, true, deliveries); !decoded)
      return damage(path, found.position, decoded.error().text);
    return {};
  }

  Files& files_;
  const std::string& directory_;
  Superblock superblock_;
  std::uint64_t durable_ = 0;
  Expected expected_;
  ProducerTable table_;
  bool is_whole_ = false;  // the segment begins at the address where the one before it ends
  Verified result_;
};

}  // namespace

Result<Verified> verify_partition(Files& files, const std::string& directory) {
  return Verification(files, directory).run();
}

}  // namespace once::log
