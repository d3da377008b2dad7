// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/flags.h"
#include "cli/output.h"
#include "operate/books.h"
#include "operate/record_json.h"

namespace once::cli {

using operate::Books;
using operate::json_of;
using operate::time_text;

// Into which store a person looks, and into whose part of it.
struct BooksFlags {
  std::optional<std::string> store;
  std::string scope;  // empty: all of them, or the only one

  // The environment is read only if there is no flag, even an empty one.
  [[nodiscard]] Result<Books> open() const;
};

void add_store(const Command& command, BooksFlags& flags);  // only the store
void add_books(const Command& command, BooksFlags& flags);

// Tells that the group of a URL is left alone, where it names one: only a pipeline joins it.
void tell_looking(const std::string& source_url, Output& output);

// A whole parked message.
void write_parked(Output& output, const std::string& scope, const ParkedRecord& record);

// Many values: an array, a line for each, or a table; a sentence where there are none.
void write_list(Output& output, const Json& values, const Table& table, std::string_view none);

}  // namespace once::cli
