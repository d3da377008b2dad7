// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "strategy/field.h"
#include "strategy/guarded_row.h"

namespace once {
namespace {

constexpr std::string_view version_column = "version";
constexpr std::uint32_t attempts_limit = 100;

Result<bool> write_if(GuardedRow& row, std::int64_t expected, std::vector<Column> changes) {
  changes.push_back({version_column, expected + 1});
  const std::array still_the_same{
      Condition{version_column, Condition::Kind::equals, {Value(expected)}}};
  return row.update(still_the_same, std::span<const Column>(changes));
}

Result<std::int64_t> take_version(std::string_view table, Row& fields) {
  const auto* version = std::get_if<std::int64_t>(&fields.back());
  if (version == nullptr)
    return fail(Remedy::stop, "config",
                fmt::format("table {}: the column version is not a number; make it BIGINT NOT NULL",
                            table));
  const std::int64_t number = *version;
  fields.pop_back();
  return number;
}

// Only what was changed is written: a column of bytes that nobody touched stays one.
std::vector<Column> changes_between(std::span<const std::string_view> columns, const Row& before,
                                    const Row& after) {
  std::vector<Column> changes;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (after[i] != before[i]) changes.push_back({columns[i], value_of(after[i])});
  return changes;
}

}  // namespace

Result<VersionAnswer> version(Transaction& transaction, std::string_view table, Columns key,
                              std::int64_t expected, Columns changes) {
  const auto row = ONCE_TRY(guarded_row(transaction, table, key));
  const bool written = ONCE_TRY(write_if(*row, expected, {changes.begin(), changes.end()}));
  if (written) return VersionAnswer::changed;
  const auto there = ONCE_TRY(row->read(std::array{version_column}, Freshness::latest));
  return there ? VersionAnswer::contended : VersionAnswer::missing;
}

Result<VersionAnswer> version(Transaction& transaction, std::string_view table, Columns key,
                              std::initializer_list<std::string_view> columns, const EditRow& edit,
                              std::uint32_t attempts_max) {
  if (attempts_max < 1 || attempts_max > attempts_limit)
    return fail(
        Remedy::stop, "config",
        fmt::format("attempts_max of version is 1..{}, not {}", attempts_limit, attempts_max));
  const auto row = ONCE_TRY(guarded_row(transaction, table, key));
  std::vector<std::string_view> names(columns);
  names.push_back(version_column);
  for (std::uint32_t attempt = 1; attempt <= attempts_max; ++attempt) {
    // A second look at a snapshot would see the same again.
    const auto freshness = attempt == 1 ? Freshness::snapshot : Freshness::latest;
    auto found = ONCE_TRY(row->read(names, freshness));
    if (!found) return VersionAnswer::missing;
    const std::int64_t read = ONCE_TRY(take_version(table, *found));
    Row fields = *found;
    if (ONCE_TRY(edit(fields)) == Edit::keep) return VersionAnswer::kept;
    if (fields.size() != found->size())
      return fail(Remedy::stop, "config",
                  fmt::format("table {}: the function of version made {} columns of {}", table,
                              fields.size(), found->size()));
    if (ONCE_TRY(write_if(*row, read, changes_between(names, *found, fields))))
      return VersionAnswer::changed;
  }
  return VersionAnswer::contended;
}

Status precondition_equals(std::string_view table, std::string_view column) {
  return fail(Remedy::stop, "config",
              fmt::format("\"write if {1} is still 500\" is refused: a value can come back. A "
                          "reads 500 and wants 600; its write is applied, {1} is 600, and the "
                          "answer is lost. B takes 100, {1} is 500 again. A's message comes a "
                          "second time, finds 500 and is applied twice. Give the table {0} a "
                          "column version, which never comes back, and use `version`",
                          table, column));
}

}  // namespace once
