// SPDX-License-Identifier: Apache-2.0
#include "stage.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

using namespace once;

namespace stage {
namespace {

tl::unexpected<Error> wrong(std::string text) {
  return fail(Remedy::stop, "books", "the books do not balance: " + std::move(text));
}

}  // namespace

Result<Arguments> arguments(int argc, char** argv) {
  Arguments arguments;
  if (argc == 4 && std::strcmp(argv[2], "--rounds") == 0)
    arguments.rounds = std::atoi(argv[3]);
  else if (argc != 2)
    arguments.rounds = 0;
  if (arguments.rounds < 1 || arguments.rounds > 1000)
    return fail(Remedy::stop, "usage",
                "usage: " + std::string(argv[0]) + " DIRECTORY [--rounds 1..1000]");
  arguments.directory = argv[1];
  std::error_code failed;
  std::filesystem::create_directories(arguments.directory, failed);
  if (failed) return fail(Remedy::stop, "usage", arguments.directory + ": " + failed.message());
  return arguments;
}

Status set_up(Store& store, std::initializer_list<const char*> statements) {
  auto transaction = ONCE_TRY(store.begin("setup"));
  for (const char* statement : statements) ONCE_TRY(transaction->sql()->execute(statement));
  return transaction->commit();
}

std::vector<Message> doubled(const std::vector<Message>& messages) {
  std::vector<Message> twice;
  for (const Message& message : messages) twice.insert(twice.end(), 2, message);
  return twice;
}

Status send(const std::string& directory, const std::string& topic, const std::string& producer,
            const std::vector<Message>& messages) {
  ONCE_TRY(create_topic(directory, topic, {}));
  auto sink = ONCE_TRY(open_sink("file:" + directory + "/" + topic));
  ProducerOptions options;
  options.name = producer;
  options.replay = true;  // the log recognises what it has
  options.batch_count_max = 10;
  auto sender = ONCE_TRY(Producer::open(*sink, options));
  ONCE_TRY(sender->send(messages));
  return {};
}

Status consume(const std::string& directory, const std::string& topic, Store& store,
               Handler handler, PipelineOptions options) {
  auto source = ONCE_TRY(open_source("file:" + directory + "/" + topic + "?end=stop"));
  options.batch_count_max = 8;  // small, so that a kill finds work that is half done
  auto pipeline = ONCE_TRY(Pipeline::make(*source, store, std::move(handler), options));
  return pipeline->run();
}

Status relay(const std::string& directory, const std::string& topic, Store& store) {
  ONCE_TRY(create_topic(directory, topic, {}));
  RelayOptions options;
  options.name = "relay";
  options.batch_count_max = 8;
  auto sender = ONCE_TRY(Relay::make(
      store,
      [&](std::string_view) -> Result<std::shared_ptr<Sink>> {
        return open_sink("file:" + directory + "/" + topic);
      },
      options));
  while (ONCE_TRY(sender->step()) > 0) continue;
  return {};
}

Result<Rows> ask(Store& store, const char* query) {
  auto transaction = ONCE_TRY(store.begin("books"));
  return transaction->sql()->query(query);
}

Status same(const std::string& what, Store& store, const char* query,
            const std::vector<std::string>& expected) {
  std::vector<std::string> got;
  for (const Row& row : ONCE_TRY(ask(store, query))) got.push_back(std::get<std::string>(row[0]));
  return same(what, got, expected);
}

Status same(const std::string& what, const std::vector<std::string>& got,
            const std::vector<std::string>& expected) {
  std::map<std::string, int> missing;  // how often each is still expected
  for (const std::string& id : expected) ++missing[id];
  for (const std::string& id : got)
    if (--missing[id] < 0) return wrong(what + ": \"" + id + "\" is there too often");
  for (const auto& [id, count] : missing)
    if (count > 0) return wrong(what + ": \"" + id + "\" is missing");
  const auto place = std::mismatch(got.begin(), got.end(), expected.begin());
  if (place.first == got.end()) return {};
  return wrong(what + ": \"" + *place.first + "\" came before \"" + *place.second + "\"");
}

Status equal(const std::string& what, std::int64_t got, std::int64_t expected) {
  if (got == expected) return {};
  return wrong(what + " is " + std::to_string(got) + ", not " + std::to_string(expected));
}

int end(const Result<std::string>& story) {
  if (story) return std::printf("the books balance: %s\n", story->c_str()), 0;
  return std::fprintf(stderr, "%s\n", story.error().text.c_str()), 1;
}

}  // namespace stage
