// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// A function of one session that runs a write for many rows of values, in one call, which saves the
// messages of as many statements. It answers how many rows each of them touched. When one fails, it
// fails as that did, and says how far it came.
struct EachFunction {
  std::string create;
  std::string call;  // with $1, $2, ...: for each parameter of the write an array of texts
  std::string loop;  // the write, as the loop has it
};

// `types` are those that the server has given to the parameters. Nothing if the statement has
// something that means another thing inside a function.
std::optional<EachFunction> each_function(std::string_view name, std::string_view statement,
                                          std::span<const std::string> types);

// The counts of rows in an answer to a call, as the server prints an array.
std::vector<std::int64_t> counts_in(std::string_view array);

// How a call failed: what the writes before the one that failed had touched, and what the server
// would have said if that had been sent alone. An error that is not of a write (the call was
// canceled, say) has no counts: nobody knows them.
struct EachFailure {
  std::vector<std::int64_t> counts;
  std::string native;
};
EachFailure failure_in(const PGresult* result, const EachFunction& function);

}  // namespace once
