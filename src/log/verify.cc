// SPDX-License-Identifier: Apache-2.0
#include "log/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "log/producer_table.h"
#include "log/record_batch.h"
#include "log/recovery.h"
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
    superblock_ = ONCE_TRY(read_superblock(files_, directory_));
    durable_ = superblock_.durable.address;
    if (auto watermark = Watermark::open_to_read(files_, directory_, superblock_.log_id))
      if (const auto end = (*watermark)->read()) durable_ = std::max(durable_, end->address);
    const auto segments = ONCE_TRY(list_segments(files_, directory_));
    result_.first_offset = superblock_.first_offset;
    expected_ = {superblock_.log_id, 0, superblock_.first_offset};
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (segments[i] < superblock_.first_offset) continue;  // deleted on purpose, not yet gone
      ONCE_TRY(verify_segment(segments[i], i + 1 == segments.size()));
    }
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
    const bool continues = base_offset == expected_.offset &&
                           (result_.segments == 0 || first.header.address == expected_.address);
    if (!continues) return damage(path, 0, "it does not continue the segment before it");
    ++result_.segments;
    FrameWalker walker(*file, 0, {superblock_.log_id, first.header.address, base_offset}, true);
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
      const auto snapshot = ProducerTable::decode(found.body);
      if (!snapshot) return damage(path, found.position, snapshot.error().text);
      if (result_.segments > 1 && !snapshot->knows_the_same_as(table_))
        return damage(path, found.position, "the producers are not those of the frames before");
    }
    if (!apply_frame(found.header, found.body, table_))
      return damage(path, found.position, "the frame contradicts those before it");
    if (found.header.kind != FrameKind::data) return {};
    Deliveries deliveries;
    if (auto decoded = decode_batch(found.body, found.header.stamp, true, deliveries); !decoded)
      return damage(path, found.position, decoded.error().text);
    if (deliveries.deliveries.size() != found.header.record_count ||
        deliveries.deliveries.front().offset != found.header.base_offset)
      return damage(path, found.position, "the batch does not match its frame");
    result_.messages += deliveries.deliveries.size();
    return {};
  }

  Files& files_;
  const std::string& directory_;
  Superblock superblock_;
  std::uint64_t durable_ = 0;
  Expected expected_;
  ProducerTable table_;
  Verified result_;
};

}  // namespace

Result<Verified> verify_partition(Files& files, const std::string& directory) {
  return Verification(files, directory).run();
}

}  // namespace once::log
