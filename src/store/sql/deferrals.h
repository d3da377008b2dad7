// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/records.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/sql/books.h"

namespace once {

class SqlDeferrals final : public Deferrals {
 public:
  explicit SqlDeferrals(SqlBooks& books) : books_(books) {}

  Result<DueMessages> due(std::string_view scope, std::size_t count_max) override;
  Result<std::vector<DeferredRecord>> deferred(std::string_view scope, std::int64_t after_number,
                                               std::size_t count_max) override;
  Status hasten(std::string_view scope, std::span<const std::int64_t> numbers,
                std::string_view reason) override;
  Status abandon(std::string_view scope, std::span<const std::int64_t> numbers,
                 std::string_view reason) override;

 private:
  Result<std::string> lock_deferred(SqlSession& session, std::string_view scope,
                                    std::int64_t scope_number, std::int64_t number) const;

  SqlBooks& books_;
};

}  // namespace once
