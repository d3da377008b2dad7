// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "model/random.h"
#include "model/sha256.h"
#include "strategy/guarded_row.h"

namespace once {
namespace {

constexpr std::size_t token_digits = 32;
constexpr std::int64_t good_for_ms_max = 366LL * 24 * 3600 * 1000;

// Whoever reads the table cannot redeem what is in it.
std::string digest_of(std::string_view subject, std::string_view token) {
  Sha256 hash("once.token.1");
  hash.field(subject);
  hash.field(token);
  return to_hex(hash.digest128());
}

}  // namespace

Result<std::string> issue_token(Transaction& transaction, std::string_view table,
                                std::string_view subject, std::int64_t good_for_ms, Clock& clock) {
  if (good_for_ms < 1 || good_for_ms > good_for_ms_max)
    return fail(Remedy::stop, "config",
                fmt::format("a token is good for 1..{} ms, not {}", good_for_ms_max, good_for_ms));
  std::array<std::uint8_t, token_digits / 2> random;
  ONCE_TRY(random_bytes(random));
  std::string token = to_hex(random);
  const std::string digest = digest_of(subject, token);
  const std::int64_t now_ms = clock.now_ms();
  const auto row = ONCE_TRY(guarded_row(transaction, table, {{"digest", digest}}));
  const bool inserted = ONCE_TRY(
      row->insert({{"issued_ms", now_ms}, {"expires_ms", now_ms + good_for_ms}, {"used_ms", 0}}));
  if (!inserted)
    return fail(Remedy::stop, "corrupt", "a new token was issued before: randomness is broken");
  return token;
}

Result<TokenAnswer> redeem_token(Transaction& transaction, std::string_view table,
                                 std::string_view subject, std::string_view token, Clock& clock) {
  const std::string digest = digest_of(subject, token);
  const auto row = ONCE_TRY(guarded_row(transaction, table, {{"digest", digest}}));
  const std::int64_t now_ms = clock.now_ms();
  const std::array good{Condition{"used_ms", Condition::Kind::equals, {Value(0)}},
                        Condition{"expires_ms", Condition::Kind::above, {Value(now_ms)}}};
  if (ONCE_TRY(row->update(good, {{"used_ms", now_ms}}))) return TokenAnswer::redeemed;
  const std::string_view used_column = "used_ms";
  const auto found = ONCE_TRY(row->read(std::span(&used_column, 1), Freshness::latest));
  if (!found) return TokenAnswer::unknown;
  return found->front() == Field(std::int64_t{0}) ? TokenAnswer::expired : TokenAnswer::used;
}

}  // namespace once
