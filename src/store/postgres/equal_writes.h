// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/sql_update.h"
#include "store/sql/connection.h"
#include "store/sql/kept_values.h"
#include "store/sql/waves.h"

namespace once {

// Updates in a row that only differ in their values, kept until another statement comes.
class EqualWrites {
 public:
  EqualWrites() = default;
  // `numbered` is the statement with $1, $2, ...
  EqualWrites(std::string_view statement, std::string numbered,
              std::shared_ptr<const KeyedUpdate> update)
      : statement_(statement), numbered_(std::move(numbered)), update_(std::move(update)) {}

  // Whether this write is another one of them.
  bool are(std::string_view statement, std::span<const Value> values) const {
    return !rows_.empty() && values.size() == update_->is_plain.size() && statement == statement_;
  }
  void add(std::span<const Value> values, SqlConnection::Then then) {
    rows_.emplace_back(values);
    thens_.push_back(std::move(then));
    bytes_ += rows_.back().bytes();
  }

  const std::string& statement() const { return statement_; }
  const std::string& numbered() const { return numbered_; }
  const KeyedUpdate& update() const { return *update_; }
  std::size_t count() const { return rows_.size(); }
  bool are_many() const { return count() >= equal_rows_min; }
  // They are sent before more are taken.
  bool are_full() const { return count() >= count_max || bytes_ >= bytes_max; }

  std::vector<std::span<const Value>> rows() const {
    std::vector<std::span<const Value>> views;
    views.reserve(rows_.size());
    for (const KeptValues& row : rows_) views.push_back(row.values());
    return views;
  }
  std::vector<SqlConnection::Then>& thens() { return thens_; }

 private:
  static constexpr std::size_t count_max = 20'000;
  static constexpr std::size_t bytes_max = 4 << 20;

  std::string statement_;
  std::string numbered_;
  std::shared_ptr<const KeyedUpdate> update_;
  std::vector<KeptValues> rows_;
  std::vector<SqlConnection::Then> thens_;
  std::size_t bytes_ = 0;
};

}  // namespace once
