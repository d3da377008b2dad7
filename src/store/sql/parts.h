// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/sql/claims.h"
#include "store/sql/deferrals.h"
#include "store/sql/outbox.h"
#include "store/sql/positions.h"
#include "store/sql/records.h"
#include "store/sql/repairs.h"

namespace once {

// What a store in an SQL database consists of, beside its transactions. Each part is a small class
// over the same tables, and knows nothing of how the store connects.
struct SqlParts {
  explicit SqlParts(SqlBooks& books)
      : positions(books),
        horizons(books),
        outbox(books, positions),
        records(books),
        repairs(books, positions),
        claims(books),
        deferrals(books) {}

  SqlPositions positions;
  SqlHorizons horizons;
  SqlOutbox outbox;
  SqlRecords records;
  SqlRepairs repairs;
  SqlClaims claims;
  SqlDeferrals deferrals;
};

}  // namespace once
