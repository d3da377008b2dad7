// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "model/sql_update.h"
#include "store/mysql/bulk.h"

namespace once {

// Whether values of these types mean the same when they come from a table. A text does not, where
// it is compared: it would have a collation of its own. One that a column is just set to does.
bool can_be_table(const KeyedUpdate& update, const RowTypes& types);

// One statement that does what an update does for each of many rows of values. Every key is there
// once, and finds one row at most.
std::string set_update(const KeyedUpdate& update, const RowTypes& types,
                       std::span<const std::span<const Value>> rows);

}  // namespace once
