// SPDX-License-Identifier: Apache-2.0
#include "store/redis/row.h"

#include "model/claim.h"
#include "model/message_row.h"

namespace once {
namespace {

constexpr unsigned upper = 16;  // the second half of the first byte

void append_varint(std::string& bytes, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  bytes += static_cast<char>(number);
}

// With its length in one byte.
void append_short(std::string& bytes, std::string_view text) {
  bytes += static_cast<char>(text.size());
  bytes += text;
}

void append_long(std::string& bytes, std::string_view text) {
  append_varint(bytes, text.size());
  bytes += text;
}

// Takes a row apart from its front; what is not there spoils it.
class Cutter {
 public:
  explicit Cutter(std::string_view row) : rest_(row) {}

  bool ok() const { return ok_; }
  std::string_view take(std::size_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      size = rest_.size();
    }
    const std::string_view head = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return head;
  }
  unsigned byte() {
    const std::string_view one = take(1);
    return one.empty() ? 0 : static_cast<unsigned char>(one[0]);
  }
  std::int64_t eight() { return number_in_eight(take(8)); }
  std::uint64_t varint() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const unsigned one = byte();
      number |= static_cast<std::uint64_t>(one & 0x7f) << shift;
      if (one < 0x80) return number;
    }
    ok_ = false;
    return 0;
  }
  std::string_view short_text() { return take(byte()); }
  std::string_view long_text() { return take(varint()); }
  std::string_view rest() { return take(rest_.size()); }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

tl::unexpected<Error> spoiled(std::string_view what) {
  return fail(Remedy::stop, "corrupt",
              "redis: " + std::string(what) + " is not what Once has written there");
}

std::string fingerprint_text(const Fingerprint& fingerprint) {
  if (fingerprint.version == 0) return {};
  const FingerprintBytes bytes = bytes_of(fingerprint);
  return {bytes.data(), bytes.size()};
}

}  // namespace

std::string eight_bytes(std::int64_t number) {
  std::string bytes(8, '\0');
  auto rest = static_cast<std::uint64_t>(number);
  for (std::size_t i = 8; i-- > 0; rest >>= 8) bytes[i] = static_cast<char>(rest & 0xff);
  return bytes;
}

std::int64_t number_in_eight(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(number);
}

std::string ledger_row(const LedgerRecord& record) {
  const std::string fingerprint = fingerprint_text(record.fingerprint);
  std::string row;
  row.reserve(26 + record.partition.size() + fingerprint.size() + record.outcome.detail.size());
  row += static_cast<char>(static_cast<unsigned>(record.outcome.kind) +
                           (fingerprint.empty() ? 0 : upper));
  row += eight_bytes(record.born_ms);
  row += eight_bytes(record.recorded_ms);
  row += eight_bytes(record.offset);
  append_short(row, record.partition);
  row += fingerprint;
  row += record.outcome.detail;
  return row;
}

Result<LedgerRecord> ledger_record(std::string_view id, std::string_view row) {
  Cutter cutter(row);
  LedgerRecord record;
  record.id = id;
  const unsigned what = cutter.byte();
  record.outcome.kind = static_cast<Outcome::Kind>(what % upper);
  record.born_ms = cutter.eight();
  record.recorded_ms = cutter.eight();
  record.offset = cutter.eight();
  record.partition = cutter.short_text();
  if (what >= upper) record.fingerprint = fingerprint_from(cutter.take(FingerprintBytes{}.size()));
  record.outcome.detail = cutter.rest();
  if (!cutter.ok() || what % upper > static_cast<unsigned>(Outcome::Kind::later))
    return spoiled("a row of the ledger");
  return record;
}

std::string claim_kept(const ClaimRecord& record) {
  std::string kept;
  append_varint(kept, record.attempts);
  append_varint(kept, record.generation);
  kept += fingerprint_text(record.fingerprint);
  std::string made;
  append_short(made, kept);
  return made;
}

std::string claim_owner(std::string_view owner) {
  std::string made;
  append_short(made, owner);
  return made;
}

std::string claim_tail(const ClaimRecord& record) {
  std::string tail(1, record.result ? '\x01' : '\0');
  if (record.result) append_long(tail, *record.result);
  append_long(tail, record.reason);
  return tail + encode_steps(record.steps);
}

std::string claim_row(const ClaimRecord& record) {
  std::string row(1, static_cast<char>(static_cast<unsigned>(record.state) +
                                       upper * static_cast<unsigned>(record.after_loss)));
  row += eight_bytes(record.lease_until_ms);
  row += eight_bytes(record.changed_ms);
  row += eight_bytes(record.born_ms);
  row += eight_bytes(static_cast<std::int64_t>(record.fence));
  return row + claim_kept(record) + claim_owner(record.owner) + claim_tail(record);
}

Result<ClaimRecord> claim_record(std::string_view id, std::string_view row) {
  Cutter cutter(row);
  ClaimRecord record;
  record.id = id;
  const unsigned what = cutter.byte();
  record.state = static_cast<ClaimState>(what % upper);
  record.after_loss = static_cast<AfterLoss>(what / upper);
  record.lease_until_ms = cutter.eight();
  record.changed_ms = cutter.eight();
  record.born_ms = cutter.eight();
  record.fence = static_cast<std::uint64_t>(cutter.eight());
  Cutter kept(cutter.short_text());
  record.attempts = static_cast<std::uint32_t>(kept.varint());
  record.generation = kept.varint();
  if (!kept.empty()) record.fingerprint = fingerprint_from(kept.rest());
  record.owner = cutter.short_text();
  if (cutter.byte() == 1) record.result = std::string(cutter.long_text());
  record.reason = cutter.long_text();
  record.steps = ONCE_TRY(decode_steps(cutter.rest()));
  if (!cutter.ok() || !kept.ok() || what % upper > static_cast<unsigned>(ClaimState::rejected) ||
      what / upper > static_cast<unsigned>(AfterLoss::give_up))
    return spoiled("a claim");
  return record;
}

}  // namespace once
