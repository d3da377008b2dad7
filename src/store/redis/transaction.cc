// SPDX-License-Identifier: Apache-2.0
#include "store/redis/transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/failpoint.h"
#include "model/compact_id.h"
#include "model/expectation.h"
#include "model/fingerprint.h"
#include "model/ledger.h"
#include "model/message_row.h"
#include "model/message_view.h"
#include "store/redis/position.h"
#include "store/redis/row.h"
#include "store/redis/script.h"
#include "store/redis/slot.h"

namespace once {
namespace {

constexpr std::size_t words_max = 1'000'000;  // of one command; servers before 7 take no more
constexpr std::size_t ids_per_look = 10'000;

std::string maybe(const std::optional<std::string>& value) { return value ? "=" + *value : "-"; }

}  // namespace

Status RedisTransaction::check_open() const {
  if (doom_) return fail(*doom_);
  if (committed_)
    return fail(Remedy::stop, "config", "redis: the transaction was committed; begin another");
  return {};
}

// --- positions

Status RedisTransaction::advance(std::string_view partition, const Position& from, std::int64_t to,
                                 const Progress& progress) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_advance(partition, from, to));
  const Position target{to, from.fence, {}};
  const auto [move, is_new] =
      moves_.try_emplace(std::string(partition), Move{from, target, progress});
  if (is_new) return {};
  if (move->second.to != from)
    return fail(*(doom_ = fenced_error(scope_, partition, from, move->second.to)));
  move->second.to = target;
  move->second.progress = joined(move->second.progress, progress);
  return {};
}

// --- ids

Result<RedisTransaction::Looked> RedisTransaction::look(std::span<const Entry> entries) {
  std::vector<std::string_view> ids;
  for (const Entry& entry : entries)
    if (!fresh_.contains(std::string(entry.id))) ids.push_back(entry.id);
  const std::string ledger = store_.books().key("ledger", scope_);
  std::vector<RedisCall> calls;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % ids_per_look == 0) calls.push_back(store_.command({"HMGET", ledger}));
    calls.back().add(CompactId(ids[i]).bytes());
  }
  // The horizon after the ids: what was forgotten before we looked is seen to be below it.
  calls.push_back(store_.command({"GET", store_.books().key("horizon", scope_)}));
  calls.push_back(store_.command({"TIME"}));
  const auto answers = ONCE_TRY(store_.nodes_.ask(calls, RedisStage::read));
  Looked looked;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const RedisAnswer row = answers[i / ids_per_look].at(i % ids_per_look);
    if (row.is_nil()) continue;
    looked.records.emplace(ids[i], ONCE_TRY(ledger_record(ids[i], row.text())));
  }
  looked.horizon_ms = number_in_eight(answers[answers.size() - 2].text());
  const RedisAnswer& time = answers.back();
  looked.now_ms = time.at(0).number() * 1000 + time.at(1).number() / 1000 + store_.skew_ms();
  return looked;
}

Verdict RedisTransaction::verdict_of(const Entry& entry, const Looked& looked) {
  const auto compared = [&](const LedgerRecord& record) {
    const bool other = contradicts(record.fingerprint, entry.fingerprint);
    if (!other) return Verdict{Verdict::Kind::duplicate, record.outcome};
    return Verdict{Verdict::Kind::mismatch, record.outcome, record.partition, record.offset};
  };
  std::string id(entry.id);
  if (const auto ours = fresh_.find(id); ours != fresh_.end()) return compared(ours->second);
  if (const auto stored = looked.records.find(entry.id); stored != looked.records.end()) {
    if (entry.deferral.number != 0 || entry.replays_parked) {
      resumable_[id] = stored->second;
      resumable_[id].recorded_ms = looked.now_ms;
    }
    return compared(stored->second);
  }
  const std::int64_t born_ms = ledger_time(entry.born_ms);
  if (born_ms < looked.horizon_ms) return {.kind = Verdict::Kind::too_old, .stored = {}};
  LedgerRecord record{id,          entry.fingerprint, {},
                      born_ms,     looked.now_ms,     std::string(entry.partition),
                      entry.offset};
  fresh_.emplace(std::move(id), std::move(record));
  return {};
}

Result<std::vector<Verdict>> RedisTransaction::admit(std::span<const Entry> entries) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_entries(entries));
  if (entries.empty()) return std::vector<Verdict>{};
  for (const Entry& entry : entries) ONCE_TRY(check_partition(entry.partition));
  return keep(admit_resuming(entries));
}

Result<std::vector<Verdict>> RedisTransaction::admit_plain(std::span<const Entry> entries) {
  const Looked looked = ONCE_TRY(look(entries));
  std::vector<Verdict> verdicts;
  verdicts.reserve(entries.size());
  for (const Entry& entry : entries) verdicts.push_back(verdict_of(entry, looked));
  return verdicts;
}

// --- outcomes

Status RedisTransaction::settle(const Delivery& delivery, const Outcome& outcome) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_settle(outcome));
  const auto record = fresh_.find(std::string(delivery.id));
  // A later copy in the same batch, parked for its other content, must not touch the first one's.
  const bool ours = record != fresh_.end() && record->second.offset == delivery.offset &&
                    record->second.partition == delivery.partition;
  if (ours && outcome.kind == Outcome::Kind::no_effect) {
    freed_.emplace_back(record->first, record->second.born_ms);
    fresh_.erase(record);
  } else if (ours) {
    record->second.outcome = outcome;
  }
  if (outcome.kind == Outcome::Kind::parked) park(delivery, outcome.detail);
  if (outcome.kind == Outcome::Kind::later || delivery.deferral.number != 0)
    change_deferral(delivery, outcome);
  return {};
}

void RedisTransaction::park(const Delivery& delivery, const std::string& reason) {
  parked_.push_back({{0, std::string(delivery.partition), delivery.offset, delivery.attempt, 0,
                      reason, message_of(delivery)},
                     encode_headers(delivery)});
}

// --- outbox

Status RedisTransaction::enqueue(std::string_view destination, const Message& message) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_destination(destination));
  const auto known = std::find(destinations_.begin(), destinations_.end(), destination);
  const auto place = static_cast<std::size_t>(known - destinations_.begin());
  if (known == destinations_.end()) destinations_.emplace_back(destination);
  enqueued_.push_back({place, message, encode_headers(message)});
  return {};
}

// --- keys and values

// A key that no transaction can have: of all messages, or of one with such a value in it.
tl::unexpected<Error> RedisTransaction::refused_key(std::string text) const {
  Error error{Remedy::stop, "config",     std::move(text),
              std::nullopt, std::nullopt, Cause::statement};
  return fail(blamed_on(message_, std::move(error)));
}

Result<std::string> RedisTransaction::full_key(std::string_view key) const {
  std::string full = store_.address_.keys + std::string(key);
  const RedisPlace& books = store_.books();
  if (full.starts_with(books.root()))
    return refused_key(
        fmt::format("{}: the key \"{}\" is one of our own; keys of handlers do not begin with {}",
                    store_.address_.where(), full, books.root()));
  if (store_.nodes_.clustered() && slot_of(full) != books.slot())
    return refused_key(
        fmt::format("{}: the key \"{}\" is in another slot of the cluster than the books, "
                    "so that one transaction cannot write both; put {{{}}} into the key, or "
                    "?keys=%7B{}%7D: into the URL, which does so for all keys",
                    store_.address_.where(), full, books.tag(), books.tag()));
  return full;
}

Result<std::optional<std::string>> RedisTransaction::get(std::string_view key) {
  ONCE_TRY(check_open());
  auto value = get_now(key);
  if (!value) return fail(*(doom_ = blamed_on(message_, std::move(value).error())));
  return value;
}

Result<std::optional<std::string>> RedisTransaction::get_now(std::string_view key) {
  std::string full = ONCE_TRY(full_key(key));
  if (command_key_places_.contains(full)) return used_twice(full);
  if (const auto ours = written_.find(full); ours != written_.end()) return ours->second.value;
  if (const auto before = read_.find(full); before != read_.end()) return before->second;
  const RedisAnswer answer = ONCE_TRY(store_.ask(store_.command({"GET", full}), RedisStage::read));
  std::optional<std::string> value;
  if (!answer.is_nil()) value = std::string(answer.text());
  read_.emplace(std::move(full), value);
  return value;
}

Status RedisTransaction::write(std::string_view key, std::optional<std::string> value) {
  ONCE_TRY(check_open());
  std::string full = ONCE_TRY(keep(full_key(key)));
  if (command_key_places_.contains(full)) return keep(Status(used_twice(full)));
  written_.insert_or_assign(std::move(full), Write{std::move(value), message_});
  return {};
}

Status RedisTransaction::put(std::string_view key, std::string_view value) {
  return write(key, std::string(value));
}

Status RedisTransaction::erase(std::string_view key) { return write(key, std::nullopt); }

// --- commands

Status RedisTransaction::command(std::span<const std::string> words, const ExpectReply& expect) {
  ONCE_TRY(check_open());
  return keep(command_now(words, expect));
}

Status RedisTransaction::command_now(std::span<const std::string> words,
                                     const ExpectReply& expect) {
  RedisCommand command = ONCE_TRY(RedisCommand::parse(words));
  command.key = ONCE_TRY(full_key(command.key));
  if (read_.contains(command.key) || written_.contains(command.key)) return used_twice(command.key);
  command.expect = expect;
  command.message = expect.message ? expect.message : message_;
  command.key_place =
      command_key_places_.try_emplace(command.key, command_keys_.size()).first->second;
  if (command.key_place == command_keys_.size()) command_keys_.push_back(command.key);
  commands_.push_back(std::move(command));
  return {};
}

tl::unexpected<Error> RedisTransaction::used_twice(std::string_view key) const {
  return fail(Remedy::stop, "config",
              fmt::format("{}: the key \"{}\" is used by a command and by get, put or erase in one "
                          "transaction; use one of them",
                          store_.address_.where(), key));
}

void RedisTransaction::add_commands(RedisCall& call) const {
  const auto digits = [](const std::optional<std::int64_t>& number) {
    return number ? fmt::format("{}", *number) : std::string();
  };
  for (const RedisCommand& command : commands_) {
    call.add(static_cast<std::int64_t>(command.arguments().size()));
    call.add(static_cast<std::int64_t>(command.key_place));
    call.add(command.name).add(digits(command.expect.is)).add(digits(command.expect.at_least));
    for (const std::string& argument : command.arguments()) call.add(argument);
  }
}

Status RedisTransaction::refused_command(const RedisAnswer& answer) const {
  const auto place =
      std::min<std::size_t>(static_cast<std::size_t>(answer.at(1).number()), commands_.size() - 1);
  const RedisCommand& command = commands_[place];
  const auto what = fmt::format("{}: {} {}", store_.address_.where(), command.name, command.key);
  const std::string_view reply = answer.at(3).text();
  if (answer.at(2).text() == "error")
    return fail(blamed_on(command.message, {Remedy::park, "constraint",
                                            fmt::format("{}: {}", what, reply), std::nullopt}));
  Error error{Remedy::park, "expect", fmt::format("{}: the reply was {}", what, reply),
              std::nullopt};
  if (command.message) error.culprit = Culprit{*command.message, command.expect.otherwise};
  return fail(std::move(error));
}

// --- commit

bool RedisTransaction::is_empty() const {
  return moves_.empty() && fresh_.empty() && freed_.empty() && parked_.empty() &&
         enqueued_.empty() && read_.empty() && written_.empty() && commands_.empty() &&
         changes_.empty() && deferred_.empty();
}

std::vector<std::string> RedisTransaction::commit_keys() const {
  const RedisPlace& books = store_.books();
  std::vector<std::string> keys{
      books.key("scopes"),          books.key("positions", scope_), books.key("ledger", scope_),
      books.key("horizon", scope_), books.key("parked", scope_),    books.key("operations", scope_),
      books.key("destinations"),    books.key("deferred", scope_),  books.key("due", scope_),
      books.key("order", scope_),   books.key("deferrals", scope_)};
  for (const std::string& destination : destinations_)
    keys.push_back(books.key("outbox", destination));
  for (const auto& [key, value] : read_) keys.push_back(key);
  for (const auto& [key, value] : written_) keys.push_back(key);
  for (const std::string& key : command_keys_) keys.push_back(key);
  return keys;
}

Result<RedisCall> RedisTransaction::commit_call() const {
  std::int64_t oldest = std::numeric_limits<std::int64_t>::max();
  std::vector<const LedgerRecord*> fresh;
  for (const auto& [id, record] : fresh_)
    if (!resumed_.contains(id)) fresh.push_back(&record);
  std::vector<std::string_view> freed;
  for (const LedgerRecord* record : fresh) oldest = std::min(oldest, record->born_ms);
  for (const auto& [id, born_ms] : freed_) {
    if (resumed_.contains(id)) continue;
    freed.push_back(id);
    oldest = std::min(oldest, born_ms);
  }
  const auto unparked = std::count_if(resumed_.begin(), resumed_.end(), [](const auto& one) {
    return one.second == Outcome::Kind::parked;
  });
  RedisCall call(store_.books().slot(), redis_scripts::commit, commit_keys());
  call.add(store_.skew_ms()).add(scope_).add(eight_bytes(oldest));
  for (const std::size_t count :
       {moves_.size(), fresh.size(), freed.size(), parked_.size(), destinations_.size(),
        enqueued_.size(), read_.size(), written_.size(), commands_.size(), due_.size(),
        resumed_.size(), changes_.size(), deferred_.size(), static_cast<std::size_t>(unparked)})
    call.add(static_cast<std::int64_t>(count));
  add_moves(call);
  for (const LedgerRecord* record : fresh)
    call.add(CompactId(record->id).bytes()).add(ledger_row(*record));
  for (const std::string_view id : freed) call.add(CompactId(id).bytes());
  add_rows(call);
  for (const auto& [key, value] : read_) call.add(maybe(value));
  for (const auto& [key, one] : written_) call.add(maybe(one.value));
  add_deferrals(call);
  add_commands(call);
  if (call.words() > words_max)
    return fail(Remedy::stop, "limit",
                fmt::format("{}: a transaction of {} words is more than the server takes; use "
                            "smaller batches",
                            store_.address_.where(), call.words()));
  return call;
}

void RedisTransaction::add_moves(RedisCall& call) const {
  for (const auto& [partition, move] : moves_) {
    const Progress& progress = move.progress;
    call.add(partition).add(position_text(move.from)).add(move.to.offset);
    call.add(progress.settled_ms).add(progress.waiting_ms).add(progress.drained ? "1" : "0");
    call.add(progress.witness.offset).add(fmt::format("{}", progress.witness.digest));
  }
}

void RedisTransaction::add_rows(RedisCall& call) const {
  const auto add_message = [&](const Message& message, const std::string& headers) {
    call.add("id").add(message.id);
    call.add("key").add(view_of(message.key)).add("body").add(view_of(message.body));
    call.add("headers").add(headers).add("time").add(message.timestamp_ms);
  };
  for (const Parked& parked : parked_) {
    const ParkedRecord& record = parked.record;
    call.add("partition").add(record.partition).add("offset").add(record.offset);
    call.add("attempts").add(std::int64_t{record.attempts}).add("reason").add(record.reason);
    add_message(record.message, parked.headers);
  }
  for (const std::string& destination : destinations_) call.add(destination);
  for (const Enqueued& row : enqueued_) {
    call.add(static_cast<std::int64_t>(row.destination + 1));
    add_message(row.message, row.headers);
  }
}

Status RedisTransaction::commit() {
  ONCE_TRY(check_open());
  return keep(commit_now());
}

Status RedisTransaction::commit_now() {
  if (!is_empty()) {
    const RedisCall call = ONCE_TRY(commit_call());
    ONCE_POINT(store_before_commit);
    const RedisAnswer answer = ONCE_TRY(store_.ask(call, RedisStage::write));
    if (answer.at(0).text() != "ok") return refused(answer);
  }
  committed_ = true;
  return {};
}

// The script has looked and not written.
Status RedisTransaction::refused(const RedisAnswer& answer) const {
  const std::string where = store_.address_.where();
  const std::string_view what = answer.at(0).text();
  if (what == "fenced") {
    const std::string partition(answer.at(1).text());
    const auto move = moves_.find(partition);
    const Position from = move == moves_.end() ? Position{} : move->second.from;
    return fail(fenced_error(scope_, partition, from, position_in(answer.at(2).text())));
  }
  if (what == "command") return refused_command(answer);
  if (what == "type") {
    const auto place =
        std::min<std::size_t>(static_cast<std::size_t>(answer.at(1).number()), written_.size() - 1);
    const auto one = std::next(written_.begin(), static_cast<std::ptrdiff_t>(place));
    return fail(blamed_on(
        one->second.message,
        {Remedy::park, "constraint",
         fmt::format("{}: the key \"{}\" holds something that is no string, and is left alone",
                     where, one->first),
         std::nullopt}));
  }
  return fail(Remedy::retry, "conflict",
              fmt::format("{}: {} was changed by another transaction; run this one again", where,
                          answer.at(1).text()));
}

}  // namespace once
