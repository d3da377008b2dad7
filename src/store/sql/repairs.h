// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/records.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "store/sql/positions.h"

namespace once {

class SqlRepairs final : public Repairs {
 public:
  SqlRepairs(SqlBooks& books, const SqlPositions& positions)
      : books_(books), positions_(positions) {}

  Status force(std::string_view scope, std::string_view id, std::string_view reason) override;
  Status replay(std::string_view scope, std::span<const std::int64_t> numbers,
                std::string_view destination, std::string_view reason) override;
  Status drop(std::string_view scope, std::span<const std::int64_t> numbers,
              std::string_view reason) override;
  Status correct(std::string_view scope, const Correction& correction,
                 std::string_view reason) override;

 private:
  Status set_position(SqlSession& session, std::int64_t scope, const SetPosition& to);
  Status set_horizon(SqlSession& session, std::int64_t scope, std::int64_t horizon_ms);
  Status restart_destination(SqlSession& session, std::string_view destination);
  Status drop_pending(SqlSession& session, std::int64_t scope, std::string_view destination,
                      std::string_view reason);
  static Status drop_scope(SqlSession& session, std::int64_t scope);
  Result<std::string> unpark(SqlSession& session, std::string_view scope, std::int64_t scope_number,
                             std::int64_t number) const;

  SqlBooks& books_;
  const SqlPositions& positions_;
};

}  // namespace once
