// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/once.h>

#include <initializer_list>
#include <string>
#include <vector>

// What the examples have in common, so that each shows only its own story. Everything is kept in
// one directory: topics of the embedded log, and SQLite databases. Each function may be interrupted
// by a kill at any instant and done again by the next run.
namespace stage {

// How a program is called: DIRECTORY [--rounds N]. In each round the same things are sent again.
struct Arguments {
  std::string directory;
  int rounds = 2;
};
once::Result<Arguments> arguments(int argc, char** argv);

// Statements that may be run again: CREATE TABLE IF NOT EXISTS, INSERT OR IGNORE.
once::Status set_up(once::Store& store, std::initializer_list<const char*> statements);

// Each message twice in a row: somebody clicked twice, or a gateway sent again.
std::vector<once::Message> doubled(const std::vector<once::Message>& messages);

// Sends all messages to a topic. A producer of the same name that was killed goes on where it was;
// another name is a stranger who sends the same things once more.
once::Status send(const std::string& directory, const std::string& topic,
                  const std::string& producer, const std::vector<once::Message>& messages);

// Takes a topic through a handler into a store, to its present end.
once::Status consume(const std::string& directory, const std::string& topic, once::Store& store,
                     once::Handler handler, once::PipelineOptions options);

// Sends what handlers put into the outbox for this topic.
once::Status relay(const std::string& directory, const std::string& topic, once::Store& store);

// --- The books.

once::Result<once::Rows> ask(once::Store& store, const char* query);

// An error says which id was lost, came twice, came from nowhere or came out of order.
once::Status same(const std::string& what, const std::vector<std::string>& got,
                  const std::vector<std::string>& expected);
// The same for the first column of a query, as text.
once::Status same(const std::string& what, once::Store& store, const char* query,
                  const std::vector<std::string>& expected);
once::Status equal(const std::string& what, std::int64_t got, std::int64_t expected);

// The last line, and the exit code: 0, or 1 with the error.
int end(const once::Result<std::string>& story);

}  // namespace stage
