// SPDX-License-Identifier: Apache-2.0
#include "store/sql/waves.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

namespace once {
namespace {

template <class Key>
std::optional<Waves> cut(std::span<const std::span<const Value>> rows, std::size_t parameter) {
  std::vector<std::pair<Key, std::size_t>> keys;
  keys.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Key* const key = std::get_if<Key>(&rows[i][parameter].variant());
    if (key == nullptr) return std::nullopt;
    keys.emplace_back(*key, i);
  }
  std::sort(keys.begin(), keys.end());
  Waves made;
  std::size_t wave = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    wave = i > 0 && keys[i - 1].first == keys[i].first ? wave + 1 : 0;
    if (wave == made.together.size()) made.together.emplace_back();
    made.together[wave].push_back(keys[i].second);
  }
  // A wave is never larger than the one before it.
  while (!made.together.empty() && made.together.back().size() < equal_rows_min) {
    made.rest.insert(made.rest.end(), made.together.back().begin(), made.together.back().end());
    made.together.pop_back();
  }
  std::sort(made.rest.begin(), made.rest.end());
  return made;
}

}  // namespace

std::optional<Waves> cut_into_waves(std::span<const std::span<const Value>> rows,
                                    std::size_t parameter, KeyKind kind) {
  return kind == KeyKind::number ? cut<std::int64_t>(rows, parameter)
                                 : cut<std::string_view>(rows, parameter);
}

}  // namespace once
