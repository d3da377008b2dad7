// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/postgres/parameters.h"
#include "store/sql/connection.h"
#include "store/sql/kept_values.h"

namespace once {

// A type that the server has given to a parameter.
struct ParameterType {
  std::string name;
  bool is_bytes = false;
};

// Writes in a row that only differ in their values, kept until another statement comes.
class EqualWrites {
 public:
  EqualWrites() = default;
  // `numbered` is the statement with $1, $2, ...
  EqualWrites(std::string_view statement, std::string numbered, std::size_t parameters)
      : statement_(statement), numbered_(std::move(numbered)), parameters_(parameters) {}

  // Whether this write can be one of them.
  bool are(std::string_view statement, std::span<const Value> values) const {
    return !rows_.empty() && values.size() == parameters_ && statement == statement_;
  }
  void add(std::span<const Value> values, SqlConnection::Then then);

  const std::string& statement() const { return statement_; }
  const std::string& numbered() const { return numbered_; }
  std::size_t count() const { return rows_.size(); }
  bool are_many() const { return count() >= many; }
  // They are sent before more are taken.
  bool are_full() const { return count() >= count_max || bytes_ >= bytes_max; }
  // Whether all values can travel as texts for parameters of these types.
  bool fit(std::span<const ParameterType> types) const;

  std::span<const KeptValues> rows() const { return rows_; }
  std::vector<SqlConnection::Then>& thens() { return thens_; }
  // An array for each parameter.
  Parameters arrays() const;

 private:
  // Fewer are not worth a function.
  static constexpr std::size_t many = 16;
  // So the server works while a handler goes on; each call is a subtransaction, and very many of
  // these in a transaction slow down all others.
  static constexpr std::size_t count_max = 500;
  static constexpr std::size_t bytes_max = 4 << 20;

  std::string statement_;
  std::string numbered_;
  std::size_t parameters_ = 0;
  std::vector<KeptValues> rows_;
  std::vector<SqlConnection::Then> thens_;
  std::size_t bytes_ = 0;
};

}  // namespace once
