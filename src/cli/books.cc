// SPDX-License-Identifier: Apache-2.0
#include "cli/books.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <once/open.h>
#include <once/outbox.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/file.h"
#include "cli/exit_code.h"
#include "model/message_view.h"
#include "open/log_address.h"
#include "operate/message_json.h"

namespace once::cli {
namespace {

// Scopes of our own: the relay's, the store's.
bool is_internal(const std::string& scope) { return scope.starts_with("once."); }

tl::unexpected<Error> has_none(const Store& store, std::string_view what) {
  return fail(Remedy::stop, "config",
              fmt::format("the store {} has no {}", store.traits().name, what));
}

// Opening makes what is missing; a person who mistypes a path must not be answered by an empty
// store.
Status check_exists(const std::string& text) {
  const Url url = ONCE_TRY(parse_url(text));
  if (url.scheme != "sqlite") return {};
  const auto file = system_files().open(url.path, OpenMode::read);
  if (file || file.error().tag != "missing") return {};
  return fail(Remedy::stop, "missing", fmt::format("{}: there is no such file", text));
}

}  // namespace

void add_store(CLI::App& command, BooksFlags& flags) {
  command.add_option("--store", flags.store, "The store: sqlite:PATH; or set ONCE_STORE")
      ->required()
      ->envname("ONCE_STORE")
      ->option_text("URL");
}

void add_books(CLI::App& command, BooksFlags& flags) {
  add_store(command, flags);
  command
      .add_option("--scope", flags.scope,
                  "Only this scope; needed for changes when there are several")
      ->option_text("NAME");
}

Result<Books> Books::open(const BooksFlags& flags) {
  ONCE_TRY(check_exists(flags.store));
  Books books(ONCE_TRY(open_store(flags.store)), !flags.scope.empty());
  if (books.store_->records() == nullptr) return has_none(books.store(), "records to read");
  ONCE_TRY(books.choose(flags.scope));
  return books;
}

Status Books::choose(const std::string& scope) {
  scopes_ = ONCE_TRY(records().scopes());
  if (!chosen_) return {};
  if (std::find(scopes_.begin(), scopes_.end(), scope) == scopes_.end())
    return fail_not_known(fmt::format("the store {} has no scope \"{}\"; it has: {}",
                                      store_->traits().name, scope, fmt::join(scopes_, ", ")));
  scopes_ = {scope};
  return {};
}

Result<Repairs*> Books::repairs() {
  if (store_->repairs() == nullptr) return has_none(*store_, "way to change its books by hand");
  return store_->repairs();
}

Result<ClaimStore*> Books::claims() {
  if (store_->claims() == nullptr) return has_none(*store_, "claims");
  return store_->claims();
}

Result<Outbox*> Books::outbox() {
  if (store_->outbox() == nullptr) return has_none(*store_, "outbox");
  return store_->outbox();
}

std::vector<std::string> Books::user_scopes() const {
  std::vector<std::string> scopes = scopes_;
  if (!chosen_) std::erase_if(scopes, is_internal);
  return scopes;
}

Result<std::string> Books::scope_to_change() const {
  if (chosen_) return scopes_.front();
  const std::vector<std::string> candidates = user_scopes();
  if (candidates.size() == 1) return candidates.front();
  if (candidates.empty())
    return fail_not_known(
        fmt::format("the store {} has no scope: no pipeline has used it", store_->traits().name));
  return fail_usage(fmt::format("the store {} has several scopes; choose one with --scope: {}",
                                store_->traits().name, fmt::join(candidates, ", ")));
}

std::string time_text(std::int64_t ms) {
  const std::int64_t seconds = ms >= 0 ? ms / 1000 : (ms - 999) / 1000;
  return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(seconds)),
                     ms - seconds * 1000);
}

std::string text_of(const Fingerprint& fingerprint) {
  if (fingerprint.version == 0) return {};
  std::string text = fmt::format("{}:", fingerprint.version);
  for (const std::uint8_t byte : fingerprint.digest) text += fmt::format("{:02x}", byte);
  return text;
}

Json json_of(const std::string& scope, const LedgerRecord& record) {
  Json json = {{"scope", scope}};
  operate::put_bytes(json, "id", record.id);
  json["outcome"] = name_of(record.outcome.kind);
  operate::put_bytes(json, "detail", record.outcome.detail);
  json["recorded_ms"] = record.recorded_ms;
  json["born_ms"] = record.born_ms;
  json["partition"] = record.partition;
  json["offset"] = record.offset;
  json["fingerprint"] = text_of(record.fingerprint);
  return json;
}

Json json_of(const std::string& scope, const ParkedRecord& record) {
  Json message = operate::json_of(DeliveryView(record.message).delivery());
  for (const char* field : {"partition", "offset", "stamp"}) message.erase(field);  // not its own
  return {
      {"scope", scope},          {"number", record.number},      {"parked_ms", record.parked_ms},
      {"reason", record.reason}, {"attempts", record.attempts},  {"partition", record.partition},
      {"offset", record.offset}, {"message", std::move(message)}};
}

Json json_of(const std::string& scope, const OperationRecord& record) {
  Json json = {{"scope", scope},
               {"number", record.number},
               {"at_ms", record.at_ms},
               {"action", record.action}};
  operate::put_bytes(json, "subject", record.subject);
  json["reason"] = record.reason;
  return json;
}

Json json_of(const std::string& scope, const ClaimRecord& record) {
  Json json = {{"scope", scope}};
  operate::put_bytes(json, "id", record.id);
  json["state"] = name_of(record.state);
  json["generation"] = record.generation;
  json["fence"] = record.fence;
  json["attempts"] = record.attempts;
  json["born_ms"] = record.born_ms;
  json["changed_ms"] = record.changed_ms;
  json["lease_until_ms"] = record.lease_until_ms;
  json["owner"] = record.owner;
  if (record.result) operate::put_bytes(json, "result", *record.result);
  json["reason"] = record.reason;
  json["fingerprint"] = text_of(record.fingerprint);
  json["steps"] = Json::array();
  for (const StepRecord& step : record.steps) {
    Json entry = {{"name", step.name}};
    operate::put_bytes(entry, "result", step.result);
    json["steps"].push_back(std::move(entry));
  }
  return json;
}

void write_parked(Output& output, const std::string& scope, const ParkedRecord& record) {
  if (output.json()) return output.write_json(json_of(scope, record));
  Table table({"", ""});
  table.row({"number", fmt::format("{}", record.number)});
  table.row({"scope", scope});
  table.row({"parked", time_text(record.parked_ms)});
  table.row({"reason", record.reason});
  table.row({"attempts", fmt::format("{}", record.attempts)});
  table.row({"came from", fmt::format("{} offset {}", record.partition, record.offset)});
  table.row({"id", operate::text_or_base64(record.message.id)});
  table.row({"key", operate::text_or_base64(view_of(record.message.key))});
  table.row({"timestamp", time_text(record.message.timestamp_ms)});
  for (const Header& header : record.message.headers)
    table.row({"header " + header.name, operate::text_or_base64(view_of(header.value))});
  table.row({"body", operate::text_or_base64(view_of(record.message.body))});
  output.write_table(table);
}

void write_list(Output& output, const Json& values, const Table& table, std::string_view none) {
  if (output.format == Format::jsonl)
    for (const Json& value : values) output.write_json(value);
  else if (output.json())
    output.write_json(values);
  else if (values.empty())
    output.talk(none);
  else
    output.write_table(table);
}

}  // namespace once::cli
