// SPDX-License-Identifier: Apache-2.0
// A snapshot of the producers of arbitrary bytes, of either version. What is accepted keeps its
// meaning when it is written and read again, and answers without a crash.
#include <cstdint>
#include <string>
#include <vector>

#include "base/assert.h"
#include "log/bytes.h"
#include "log/frame.h"
#include "log/producer_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace once;
  using namespace once::log;
  if (size == 0) return 0;
  constexpr std::int64_t base_offset = 1000;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::uint8_t version = (data[0] & 1) != 0 ? snapshot_version : format_version;
  auto table = ProducerTable::decode(bytes, version, base_offset);
  if (!table) {
    ONCE_ASSERT(table.error().tag == "corrupt");
    return 0;
  }
  Buffer written;
  table->encode(written);
  const ProducerTable again =
      ProducerTable::decode(written.view(), snapshot_version, base_offset).value();
  ONCE_ASSERT(again.continues(*table) && table->continues(again));
  ONCE_ASSERT(again.size() == table->size() && again.horizon_ms() == table->horizon_ms());
  Buffer twice;
  again.encode(twice);
  ONCE_ASSERT(twice.view() == written.view());
  // A producer that is not there enters, sends, and is known from then on.
  std::uint64_t drawn = 100;
  const auto stamp = table->next_entry("fuzz", [&] { return drawn += 2; });
  if (!stamp || !table->apply_entry("fuzz", stamp->producer, stamp->epoch, base_offset)) return 0;
  if (table->check(*stamp, 3, GapPolicy::refuse).kind != Check::Kind::fresh) return 0;
  ONCE_ASSERT(table->apply(*stamp, 3, base_offset));
  ONCE_ASSERT(table->check(*stamp, 3, GapPolicy::refuse).kind == Check::Kind::duplicate);
  table->begin_segment(2000);
  const auto expired = table->expired(base_offset + 3, 3000);
  table->forget(expired);
  ONCE_ASSERT(!table->knows(stamp->producer) && table->horizon_ms() >= 2000);
  return 0;
}
