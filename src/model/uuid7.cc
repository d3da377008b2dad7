// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/identity.h>

#include <array>
#include <mutex>

#include "base/hex.h"
#include "model/random.h"

namespace once {
namespace {

constexpr std::uint32_t counter_max = 0xfff;  // the 12 bits after the version
constexpr std::int64_t time_max = (std::int64_t{1} << 48) - 1;

class Uuid7 final : public IdMaker {
 public:
  explicit Uuid7(Clock& clock) : clock_(clock) {}

  Result<std::string> next() override {
    std::array<std::uint8_t, 10> random;
    ONCE_TRY(random_bytes(random));
    const std::lock_guard lock(mutex_);
    const std::int64_t now_ms = clock_.now_ms();
    if (now_ms > last_ms_) {
      last_ms_ = now_ms;
      // The counter starts in its lower half, to leave room for the ids of this millisecond.
      counter_ = (std::uint32_t{random[0]} << 8 | random[1]) & (counter_max >> 1);
    } else if (++counter_ > counter_max) {
      ++last_ms_;  // ahead of a clock that stands still or went back, never behind
      counter_ = (std::uint32_t{random[0]} << 8 | random[1]) & (counter_max >> 1);
    }
    if (last_ms_ > time_max)
      return fail(Remedy::stop, "clock", "the clock is beyond what a UUID can hold; set the clock");
    return text(random);
  }

 private:
  std::string text(const std::array<std::uint8_t, 10>& random) const {
    const auto time = static_cast<std::uint64_t>(last_ms_);
    const std::uint32_t variant = 0x8000 | ((std::uint32_t{random[2]} << 8 | random[3]) & 0x3fff);
    std::uint64_t node = 0;
    for (std::size_t i = 4; i < random.size(); ++i) node = node << 8 | random[i];
    return fmt::format("{:08x}-{:04x}-7{:03x}-{:04x}-{:012x}", time >> 16, time & 0xffff, counter_,
                       variant, node);
  }

  Clock& clock_;
  std::mutex mutex_;
  std::int64_t last_ms_ = 0;
  std::uint32_t counter_ = 0;
};

}  // namespace

std::unique_ptr<IdMaker> make_uuid7(Clock& clock) { return std::make_unique<Uuid7>(clock); }

Result<std::int64_t> uuid7_time_ms(std::string_view id) {
  const auto bad = [&] {
    return fail(Remedy::park, "no_time",
                fmt::format("\"{}\" is not a UUID of version 7", id.substr(0, 64)));
  };
  if (id.size() != 36 || id[14] != '7' ||
      std::string_view("89abAB").find(id[19]) == std::string_view::npos)
    return bad();
  std::int64_t time = 0;
  for (std::size_t i = 0; i < id.size(); ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (id[i] != '-') return bad();
      continue;
    }
    const int digit = hex_value(id[i]);
    if (digit < 0) return bad();
    if (i < 13) time = time << 4 | digit;
  }
  return time;
}

}  // namespace once
