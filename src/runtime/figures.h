// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/observe.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace once {

// A number that is counted, wherever it is counted: `of` finds it in the counters of the lanes, in
// the tally of an attempt and in the statistics.
template <class Of>
struct Count {
  std::string_view name;
  std::string_view unit;
  std::string_view help;
  Figure<Statistics>::Shown shown = Figure<Statistics>::Shown::in_full;
  Of of = {};
  bool grows = true;
};
template <class Of>
Count(std::string_view, std::string_view, std::string_view, Figure<Statistics>::Shown, Of)
    -> Count<Of>;
template <class Of>
Count(std::string_view, std::string_view, std::string_view, Figure<Statistics>::Shown, Of, bool)
    -> Count<Of>;

namespace counts {

using Shown = Figure<Statistics>::Shown;

// The table: all numbers of a `Counts`, in the order in which they are shown.
inline constexpr std::tuple all{
    Count{"delivered", "messages", "Taken from the source", Shown::in_full,
          [](auto& in) { return &in.delivered; }},
    Count{"applied", "messages", "Whose effect is committed", Shown::in_progress,
          [](auto& in) { return &in.applied; }},
    Count{"rejected", "messages", "Refused for good by the handler", Shown::in_summary,
          [](auto& in) { return &in.rejected; }},
    Count{"no_effect", "messages", "With nothing to do; their ids stay free", Shown::in_summary,
          [](auto& in) { return &in.no_effect; }},
    Count{"parked", "messages", "Set aside with a reason", Shown::in_progress,
          [](auto& in) { return &in.parked; }},
    Count{"mismatched", "messages", "Parked: the id was used for other content", Shown::in_summary,
          [](auto& in) { return &in.mismatched; }},
    Count{"too_old", "messages", "Parked: born before the ledger's horizon", Shown::in_summary,
          [](auto& in) { return &in.too_old; }},
    Count{"ahead", "messages", "Parked: born too far ahead of the store's clock", Shown::in_summary,
          [](auto& in) { return &in.ahead; }},
    Count{"duplicates", "messages", "Handled before, as the ledger says", Shown::in_progress,
          [](auto& in) { return &in.duplicates; }},
    Count{"skipped", "messages", "Handled before, as the position says", Shown::in_progress,
          [](auto& in) { return &in.skipped; }},
    Count{"passed", "messages", "Not wanted, as the file or the options say", Shown::in_summary,
          [](auto& in) { return &in.passed; }},
    Count{"retried", "attempts", "Attempts that are made again later", Shown::in_summary,
          [](auto& in) { return &in.retried; }},
    Count{"deferred", "attempts", "Put off until later, to wait in the store", Shown::in_summary,
          [](auto& in) { return &in.deferred; }},
    Count{"transactions", "transactions", "Committed", Shown::in_full,
          [](auto& in) { return &in.transactions; }},
    Count{"rolled_back", "transactions", "Rolled back", Shown::in_full,
          [](auto& in) { return &in.rolled_back; }},
    Count{"rechecked", "transactions", "Whose outcome had to be looked up", Shown::in_full,
          [](auto& in) { return &in.rechecked; }},
    Count{"forgotten", "ids", "Removed from the ledger behind the horizon", Shown::in_full,
          [](auto& in) { return &in.forgotten; }},
    Count{"batch_count", "messages", "At most in the next transaction", Shown::in_full,
          [](auto& in) { return &in.batch_count; }, false},
};

inline constexpr std::size_t count = std::tuple_size_v<decltype(all)>;
static_assert(sizeof(Counts<std::uint64_t>) == count * sizeof(std::uint64_t),
              "a number of Counts is missing in the table");

}  // namespace counts

template <class Visit>
constexpr void for_each_count(const Visit& visit) {
  std::apply([&](const auto&... each) { (visit(each), ...); }, counts::all);
}

}  // namespace once
