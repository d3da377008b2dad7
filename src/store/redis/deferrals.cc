// SPDX-License-Identifier: Apache-2.0
// Messages that wait: how transactions put them off and have them again, and what people do.
#include <fmt/format.h>
#include <once/identity.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "model/message_row.h"
#include "store/redis/deferral.h"
#include "store/redis/row.h"
#include "store/redis/script.h"
#include "store/redis/transaction.h"

namespace once {
namespace {

constexpr std::int64_t number_max = 9'999'999'999'999'999;  // as many digits as a name has

std::int64_t number_in(std::string_view digits) {
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

tl::unexpected<Error> spoiled() {
  return fail(Remedy::stop, "corrupt",
              "redis: a deferred message is not what Once has written there");
}

}  // namespace

std::string deferral_name(std::int64_t number) { return fmt::format("{:016}", number); }

std::string deferral_order(std::string_view token) {
  if (token.empty()) return "-";
  std::string hex;
  for (const char byte : token) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

std::string deferral_rest(const Delivery& delivery) {
  const std::string offset = fmt::format("{}", delivery.offset);
  const std::string time = fmt::format("{}", delivery.timestamp_ms);
  const std::string headers = encode_headers(delivery);
  const std::array<std::string_view, 7> parts{
      delivery.partition, offset, delivery.id, delivery.key, delivery.body, headers, time};
  return encode_tuple(parts);
}

Result<DeferredRecord> deferred_record(std::int64_t number, std::string_view row) {
  std::array<std::string_view, 5> words;
  for (std::string_view& word : words) {
    const std::size_t blank = row.find(' ');
    if (blank == std::string_view::npos) return spoiled();
    word = row.substr(0, blank);
    row.remove_prefix(blank + 1);
  }
  const auto reason_bytes = static_cast<std::size_t>(number_in(words[4]));
  if (reason_bytes > row.size()) return spoiled();
  auto parts = ONCE_TRY(decode_tuple(row.substr(reason_bytes)));
  if (parts.size() != 7) return spoiled();
  DeferredRecord record;
  record.number = number;
  record.partition = std::move(parts[0]);
  record.offset = number_in(parts[1]);
  record.attempts = static_cast<std::uint32_t>(number_in(words[0]));
  record.deferred_ms = number_in(words[1]);
  record.due_ms = number_in(words[2]);
  record.in_order = words[3] != "-";
  record.reason = row.substr(0, reason_bytes);
  record.message.id = std::move(parts[2]);
  record.message.key = std::move(parts[3]);
  record.message.body = std::move(parts[4]);
  ONCE_TRY(decode_headers(parts[5], record.message));
  record.message.timestamp_ms = number_in(parts[6]);
  return record;
}

// --- transactions

Status RedisTransaction::ask_gone(const Entry& entry, bool& gone) {
  asked_gone_.push_back({entry.deferral, entry.id, &gone});
  return {};
}

Status RedisTransaction::ask_behind(const Entry& entry, Verdict& verdict) {
  asked_behind_.push_back({deferral_order(order_token(entry.order_key)),
                           entry.deferral.number != 0 ? entry.deferral.number : number_max,
                           &verdict});
  return {};
}

Status RedisTransaction::await_answers() {
  const auto gone = std::exchange(asked_gone_, {});
  const auto behind = std::exchange(asked_behind_, {});
  const RedisPlace& books = store_.books();
  if (!gone.empty()) {
    RedisCall call = store_.command({"HMGET", books.key("deferred", scope_)});
    for (const AskedGone& one : gone) call.add(deferral_name(one.deferral.number));
    const RedisAnswer rows = ONCE_TRY(store_.ask(call, RedisStage::read));
    for (std::size_t i = 0; i < gone.size(); ++i) {
      const Deferral& deferral = gone[i].deferral;
      *gone[i].gone = true;
      if (rows.at(i).is_nil()) continue;
      const auto record = ONCE_TRY(deferred_record(deferral.number, rows.at(i).text()));
      *gone[i].gone = record.attempts != deferral.attempts || record.message.id != gone[i].id;
      if (!*gone[i].gone) due_[deferral.number] = deferral.attempts;
    }
  }
  if (behind.empty()) return {};
  RedisCall call = store_.script(books, redis_scripts::due_behind,
                                 {books.key("due", scope_), books.key("order", scope_)});
  for (const AskedBehind& one : behind) call.add(one.token).add(deferral_name(one.number));
  const RedisAnswer answer = ONCE_TRY(store_.ask(call, RedisStage::read));
  for (std::size_t i = 0; i < behind.size(); ++i) {
    if (answer.at(i).size() == 0) continue;
    behind[i].verdict->behind_number = number_in(answer.at(i).at(0).text());
    behind[i].verdict->behind_ms = answer.at(i).at(1).number();
  }
  return {};
}

Status RedisTransaction::resume(const Entry& entry, Outcome::Kind from) {
  LedgerRecord record = resumable_.at(std::string(entry.id));
  record.outcome = {};
  record.partition = entry.partition;
  record.offset = entry.offset;
  resumed_.emplace(entry.id, from);
  fresh_.insert_or_assign(std::string(entry.id), std::move(record));
  return {};
}

void RedisTransaction::change_deferral(const Delivery& delivery, const Outcome& outcome) {
  const bool waits = outcome.kind == Outcome::Kind::later;
  const std::int64_t after_ms = std::max<std::int64_t>(outcome.after_ms, 0);
  if (delivery.deferral.number != 0)
    changes_[delivery.deferral.number] = {waits, delivery.attempt, after_ms, outcome.detail};
  else
    deferred_.push_back({delivery.attempt, after_ms, deferral_order(order_token(delivery)),
                         outcome.detail, deferral_rest(delivery)});
}

void RedisTransaction::add_deferrals(RedisCall& call) const {
  for (const auto& [number, attempts] : due_)
    call.add(deferral_name(number)).add(std::int64_t{attempts});
  for (const auto& [id, from] : resumed_) {
    const auto record = fresh_.find(id);
    call.add(CompactId(id).bytes()).add(static_cast<std::int64_t>(from));
    call.add(record == fresh_.end() ? std::string() : ledger_row(record->second));
  }
  for (const auto& [number, change] : changes_) {
    call.add(deferral_name(number));
    call.add(change.waits ? fmt::format("{}", change.attempts) : "-");
    call.add(change.after_ms).add(change.reason);
  }
  for (const Deferred& one : deferred_)
    call.add(std::int64_t{one.attempts})
        .add(one.after_ms)
        .add(one.token)
        .add(one.reason)
        .add(one.rest);
  for (const auto& [id, from] : resumed_)
    if (from == Outcome::Kind::parked) call.add(id);
}

// --- the store

Result<DueMessages> RedisStore::due(std::string_view scope, std::size_t count_max) {
  ONCE_TRY(check_scope(scope));
  RedisCall call = script(books(), redis_scripts::due_messages,
                          {books().key("deferred", scope), books().key("due", scope)});
  call.add(static_cast<std::int64_t>(count_max));
  const RedisAnswer answer = ONCE_TRY(ask(call, RedisStage::read));
  DueMessages due;
  if (answer.at(1).text().empty()) return due;
  due.wait_ms = std::max<std::int64_t>(0, answer.at(1).number() - answer.at(0).number());
  const RedisAnswer numbers = answer.at(2);
  const RedisAnswer rows = answer.at(3);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    due.messages.push_back(
        ONCE_TRY(deferred_record(number_in(numbers.at(i).text()), rows.at(i).text())));
  return due;
}

// A hash has no order: a page is chosen from all rows, by one pass over them.
Result<std::vector<DeferredRecord>> RedisStore::deferred(std::string_view scope,
                                                         std::int64_t after_number,
                                                         std::size_t count_max) {
  std::map<std::int64_t, std::string> first;
  ONCE_TRY(scan(books(), books().key("deferred", scope),
                [&](std::string_view name, std::string_view row) -> Status {
                  const std::int64_t number = number_in(name);
                  if (number <= after_number || count_max == 0) return {};
                  first.insert_or_assign(number, std::string(row));
                  if (first.size() > count_max) first.erase(std::prev(first.end()));
                  return {};
                }));
  std::vector<DeferredRecord> records;
  for (const auto& [number, row] : first) records.push_back(ONCE_TRY(deferred_record(number, row)));
  return records;
}

Result<std::vector<std::string>> RedisStore::deferred_ids(std::string_view scope,
                                                          std::span<const std::int64_t> numbers) {
  RedisCall call = command({"HMGET", books().key("deferred", scope)});
  for (const std::int64_t number : numbers) call.add(deferral_name(number));
  const RedisAnswer rows = ONCE_TRY(ask(call, RedisStage::read));
  std::vector<std::string> ids;
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (rows.at(i).is_nil() || !seen.insert(numbers[i]).second)
      return fail(missing_deferred(scope, numbers[i]));
    ids.push_back(ONCE_TRY(deferred_record(numbers[i], rows.at(i).text())).message.id);
  }
  return ids;
}

Status RedisStore::hasten(std::string_view scope, std::span<const std::int64_t> numbers,
                          std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  if (numbers.empty()) return {};
  const auto ids = ONCE_TRY(deferred_ids(scope, numbers));
  RedisCall call = script(books(), redis_scripts::hasten,
                          {books().key("deferred", scope), books().key("due", scope),
                           books().key("operations", scope)});
  for (std::size_t i = 0; i < numbers.size(); ++i)
    call.add(deferral_name(numbers[i])).add(ids[i]).add(deferral_note(numbers[i], reason));
  const RedisAnswer answer = ONCE_TRY(ask(call, RedisStage::write));
  if (answer.at(0).text() != "ok")
    return fail(missing_deferred(scope, number_in(answer.at(1).text())));
  return {};
}

Status RedisStore::abandon(std::string_view scope, std::span<const std::int64_t> numbers,
                           std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  if (numbers.empty()) return {};
  const auto ids = ONCE_TRY(deferred_ids(scope, numbers));
  RedisCall call = script(
      books(), redis_scripts::abandon,
      {books().key("deferred", scope), books().key("due", scope), books().key("order", scope),
       books().key("operations", scope), books().key("ledger", scope)});
  call.add(abandoned(reason).detail);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    call.add(deferral_name(numbers[i]))
        .add(CompactId(ids[i]).bytes())
        .add(ids[i])
        .add(deferral_note(numbers[i], reason));
  const RedisAnswer answer = ONCE_TRY(ask(call, RedisStage::write));
  if (answer.at(0).text() != "ok")
    return fail(missing_deferred(scope, number_in(answer.at(1).text())));
  return {};
}

}  // namespace once
