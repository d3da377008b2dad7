// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/outbox.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/sql/positions.h"

namespace once {

class SqlOutbox final : public Outbox {
 public:
  SqlOutbox(SqlBooks& books, const SqlPositions& positions)
      : books_(books), positions_(positions) {}

  Result<std::vector<std::string>> destinations() override;
  Result<std::vector<OutboxRow>> pending(std::string_view destination,
                                         std::size_t count_max) override;
  Status assign(std::string_view destination, std::uint64_t fence,
                std::span<const std::int64_t> numbers, std::span<const std::uint32_t> partitions,
                std::span<const std::uint64_t> sequences = {}) override;
  Status sent(std::string_view destination, std::uint64_t fence,
              std::span<const std::int64_t> numbers) override;
  Status park(std::string_view destination, std::uint64_t fence, std::int64_t number,
              std::string_view reason) override;

 private:
  Status free_sequences(SqlSession& session, std::int64_t destination, std::int64_t partition,
                        std::int64_t first) const;
  Result<std::vector<bool>> rows_without_route(SqlSession& session, std::int64_t destination,
                                               std::span<const std::int64_t> numbers) const;
  Result<std::map<std::uint32_t, std::int64_t>> next_sequences(
      SqlSession& session, std::int64_t destination,
      std::span<const std::uint32_t> partitions) const;
  Status assign_rows(SqlSession& session, std::string_view name,
                     std::span<const std::int64_t> numbers,
                     std::span<const std::uint32_t> partitions,
                     std::span<const std::uint64_t> sequences);

  SqlBooks& books_;
  const SqlPositions& positions_;
};

}  // namespace once
