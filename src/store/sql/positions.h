// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/sql/books.h"

namespace once {

// The columns of a position, and the position in a row of them.
inline constexpr std::string_view position_columns =
    "at_offset, fence, witness_offset, witness_digest";
Position position_in(const SqlAnswer& answer, int row, int column = 0);

// Positions and their owners.
class SqlPositions {
 public:
  explicit SqlPositions(SqlBooks& books) : books_(books) {}

  // As those of a store.
  [[nodiscard]] Result<Position> take(std::string_view scope, std::string_view partition,
                                      std::string_view source_identity);
  [[nodiscard]] Result<Position> position(std::string_view scope, std::string_view partition);

  // `how` is put behind the read.
  [[nodiscard]] Result<Position> read(SqlSession& session, std::string_view scope,
                                      std::string_view partition, std::string_view how) const;

  struct Locked {
    Position position;
    std::string source_identity;
    std::uint64_t next_fence = 0;
  };
  // The row of a position, made where there is none, and locked until the end of the transaction.
  [[nodiscard]] Result<Locked> lock(SqlSession& session, std::int64_t scope,
                                    std::int64_t partition) const;
  // Locks the fence of a relay, so that it stays what it is until the commit.
  [[nodiscard]] Status check_fence(SqlSession& session, std::string_view destination,
                                   std::uint64_t fence) const;

 private:
  SqlBooks& books_;
};

// The horizons of scopes.
class SqlHorizons {
 public:
  explicit SqlHorizons(SqlBooks& books) : books_(books) {}

  struct Stored {
    std::int64_t ms = 0;
    bool held = false;  // a person has set it
  };
  [[nodiscard]] Result<Stored> stored(std::string_view scope);
  // Forwards, unless it is held. It is moved by somebody who is alone with it: whoever admits at
  // that moment shares a lock until its commit, and whoever admits later sees the new horizon.
  [[nodiscard]] Status move(std::string_view scope, std::int64_t horizon_ms);

 private:
  SqlBooks& books_;
};

}  // namespace once
