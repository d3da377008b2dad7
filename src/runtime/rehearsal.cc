// SPDX-License-Identifier: Apache-2.0
#include "runtime/rehearsal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <once/key_value.h>
#include <once/records.h>
#include <once/sql.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <variant>

#include "model/expectation.h"
#include "model/sql_text.h"
#include "runtime/lane.h"
#include "runtime/witness.h"

namespace once {
namespace {

// What was done in a transaction, to be done again in another.
using Repeat = std::function<Status(Transaction&)>;

// A store on which a lane can work without leaving anything behind: all its transactions are parts
// of one transaction of the real store, which is never committed. A part that is given up takes
// that transaction with it; the next part begins with another one, in which the parts that were
// finished are repeated. Used by one thread.
class Stage final : public Store {
 public:
  explicit Stage(Store& store) : store_(store) {}

  // The message that is handled from now on.
  void set_message(Rehearsed& message) { message_ = &message; }
  // What becomes of it, if the part that is under way is finished.
  void set_outcome(const Outcome& outcome) { outcome_ = outcome; }
  // The last error for which no message is to blame.
  std::optional<Error> take_trouble() { return std::exchange(trouble_, std::nullopt); }

  StoreTraits traits() const override { return store_.traits(); }
  Result<std::unique_ptr<Transaction>> begin(std::string_view scope) override;
  Result<Position> take(std::string_view, std::string_view, std::string_view) override {
    return fail(Remedy::stop, "config", "a rehearsal takes no partition");
  }
  Result<Position> position(std::string_view scope, std::string_view partition) override {
    return store_.position(scope, partition);
  }
  Result<Forgotten> forget(std::string_view, std::int64_t, std::size_t) override {
    return Forgotten{};
  }
  Deferrals* deferrals() override { return store_.deferrals(); }

  // For the parts.
  Transaction& transaction() {
    transaction_->on_behalf_of(0);  // there is one message at a time
    return *transaction_;
  }
  void give_up() { transaction_.reset(); }
  void finish(std::vector<Repeat> repeats, Rehearsed seen);
  // Of messages that were put off: how long others of the key wait behind them. Stores tell of
  // those that are committed.
  std::map<std::string, std::int64_t, std::less<>>& put_off() { return put_off_; }
  void note(const Error& error) { trouble_ = error; }

 private:
  Status reopen(std::string_view scope);

  Store& store_;
  std::unique_ptr<Transaction> transaction_;  // the real one
  std::vector<Repeat> repeats_;               // of the parts that are finished
  Rehearsed* message_ = nullptr;
  std::optional<Outcome> outcome_;
  std::optional<Error> trouble_;
  std::map<std::string, std::int64_t, std::less<>> put_off_;
};

// One transaction as the lane sees it. What it does is noted, for the report and to be repeated.
template <class Interface>
class Part : public Interface {
 public:
  explicit Part(Stage& stage) : stage_(stage) {}
  ~Part() override {
    if (!finished_) stage_.give_up();
  }

  // The position is its owner's to move.
  Status advance(std::string_view, const Position&, std::int64_t, const Progress&) override {
    return {};
  }
  Result<std::vector<Verdict>> admit(std::span<const Entry> entries) override {
    auto verdicts = ONCE_TRY(noted(inner().admit(entries)));
    for (const Entry& entry : entries)
      repeats_.push_back([entry, id = std::string(entry.id),  // the key belongs to a batch
                          partition = std::string(entry.partition)](Transaction& to) -> Status {
        Entry again = entry;
        again.id = id;
        again.partition = partition;
        ONCE_TRY(to.admit(std::span(&again, 1)));
        return {};
      });
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      Verdict& verdict = verdicts[i];
      seen_.verdict = verdict.kind;
      if (const auto found = stage_.put_off().find(entries[i].order_key);
          found != stage_.put_off().end() && verdict.kind == Verdict::Kind::fresh)
        verdict.behind_ms = std::max(verdict.behind_ms, found->second);
      if (verdict.kind == Verdict::Kind::duplicate) stage_.set_outcome(verdict.stored);
    }
    return verdicts;
  }
  // The memory of the delivery belongs to a batch, which stays; its id to the lane.
  Status settle(const Delivery& delivery, const Outcome& outcome) override {
    if (outcome.kind == Outcome::Kind::later && delivery.deferral.in_order)
      put_off_ = {std::string(delivery.key), outcome.after_ms};
    return done([delivery, outcome, id = std::string(delivery.id)](Transaction& to) {
      Delivery again = delivery;
      again.id = id;
      return to.settle(again, outcome);
    });
  }
  Status enqueue(std::string_view destination, const Message& message) override {
    seen_.emits.push_back({std::string(destination), message});
    return done([name = std::string(destination), message](Transaction& to) {
      return to.enqueue(name, message);
    });
  }
  Status commit() override {
    finished_ = true;
    if (put_off_) stage_.put_off().insert_or_assign(put_off_->first, put_off_->second);
    stage_.finish(std::move(repeats_), std::move(seen_));
    return {};
  }

 protected:
  Transaction& inner() const { return stage_.transaction(); }
  Status done(Repeat call) {
    ONCE_TRY(noted(call(inner())));
    repeats_.push_back(std::move(call));
    return {};
  }
  void will_repeat(Repeat call) { repeats_.push_back(std::move(call)); }
  template <class Answer>
  Answer noted(Answer answer) {
    if (!answer && !answer.error().culprit) stage_.note(answer.error());
    return answer;
  }
  Rehearsed& seen() { return seen_; }
  std::string store_name() const { return stage_.traits().name; }

 private:
  Stage& stage_;
  std::vector<Repeat> repeats_;
  Rehearsed seen_;
  std::optional<std::pair<std::string, std::int64_t>> put_off_;
  bool finished_ = false;
};

// A parameter that keeps its text.
class KeptValue {
 public:
  explicit KeptValue(const Value& value) : value_(value) {
    if (const auto* text = std::get_if<std::string_view>(&value.variant())) text_ = *text;
    if (const auto* blob = std::get_if<Blob>(&value.variant())) text_ = blob->bytes;
    if (const auto* decimal = std::get_if<Decimal>(&value.variant())) text_ = decimal->digits;
  }
  Value value() const {
    if (std::holds_alternative<std::string_view>(value_.variant())) return Value(text_);
    if (std::holds_alternative<Blob>(value_.variant())) return Value(Blob{text_});
    if (std::holds_alternative<Decimal>(value_.variant())) return Value(Decimal{text_});
    return value_;
  }

 private:
  Value value_;
  std::string text_;
};

// Every write is sent at once, so that its rows can be told and its failure comes back with it.
class SqlPart final : public Part<SqlTransaction> {
 public:
  using Part::Part;
  using SqlTransaction::execute, SqlTransaction::query, SqlTransaction::run;

  Status execute(std::string_view statement, std::span<const Value> values,
                 const Expect& expect) override {
    const std::int64_t rows = ONCE_TRY(run(statement, values));
    if (expect.rows < 0 || rows == expect.rows) return {};
    return fail(unmet_expectation(store_name(), statement, rows, expect, std::size_t{0}));
  }
  Result<std::int64_t> run(std::string_view statement, std::span<const Value> values) override {
    const std::int64_t rows = ONCE_TRY(noted(inner().sql()->run(statement, values)));
    wrote(statement, values, rows);
    return rows;
  }
  Result<Rows> query(std::string_view statement, std::span<const Value> values) override {
    Rows found = ONCE_TRY(noted(inner().sql()->query(statement, values)));
    if (!is_select(statement)) wrote(statement, values, static_cast<std::int64_t>(found.size()));
    return found;
  }
  SqlDialect dialect() const override { return inner().sql()->dialect(); }

 private:
  void wrote(std::string_view statement, std::span<const Value> values, std::int64_t rows) {
    seen().writes.push_back({std::string(statement), rows});
    will_repeat(
        [text = std::string(statement),
         kept = std::vector<KeptValue>(values.begin(), values.end())](Transaction& to) -> Status {
          std::vector<Value> again;
          again.reserve(kept.size());
          for (const KeptValue& value : kept) again.push_back(value.value());
          ONCE_TRY(to.sql()->run(text, again));
          return {};
        });
  }
};

class KeyValuePart final : public Part<KeyValueTransaction> {
 public:
  using Part::Part;

  Result<std::optional<std::string>> get(std::string_view key) override {
    return noted(inner().key_value()->get(key));
  }
  Status put(std::string_view key, std::string_view value) override {
    seen().writes.push_back({"put " + std::string(key), 1});
    return done([key = std::string(key), value = std::string(value)](Transaction& to) {
      return to.key_value()->put(key, value);
    });
  }
  Status erase(std::string_view key) override {
    seen().writes.push_back({"erase " + std::string(key), 1});
    return done([key = std::string(key)](Transaction& to) { return to.key_value()->erase(key); });
  }
  // Runs only inside of a commit: neither its reply nor what it would be refused for is known.
  Status command(std::span<const std::string> words, const ExpectReply& expect) override {
    seen().writes.push_back({fmt::format("{}", fmt::join(words, " ")), std::nullopt});
    return done([words = std::vector<std::string>(words.begin(), words.end()),
                 expect](Transaction& to) { return to.key_value()->command(words, expect); });
  }
};

Result<std::unique_ptr<Transaction>> Stage::begin(std::string_view scope) {
  ++message_->attempts;
  outcome_.reset();
  if (const Status opened = reopen(scope); !opened) {
    give_up();
    note(opened.error());
    return fail(opened.error());
  }
  if (transaction_->sql() != nullptr) return std::make_unique<SqlPart>(*this);
  if (transaction_->key_value() != nullptr) return std::make_unique<KeyValuePart>(*this);
  return std::make_unique<Part<Transaction>>(*this);
}

Status Stage::reopen(std::string_view scope) {
  if (transaction_) return {};
  transaction_ = ONCE_TRY(store_.begin(scope));
  for (const Repeat& repeat : repeats_) ONCE_TRY(repeat(transaction()));
  return {};
}

// Of the weaker semantics a part may only move the position: it has seen nothing.
void Stage::finish(std::vector<Repeat> repeats, Rehearsed seen) {
  trouble_.reset();
  repeats_.insert(repeats_.end(), std::make_move_iterator(repeats.begin()),
                  std::make_move_iterator(repeats.end()));
  if (!outcome_) return;
  message_->verdict = seen.verdict;
  message_->outcome = *std::exchange(outcome_, std::nullopt);
  message_->writes = std::move(seen.writes);
  message_->emits = std::move(seen.emits);
}

// Nobody waits for the next attempt at a message: the time in between is left out.
class HurriedClock final : public Clock {
 public:
  explicit HurriedClock(Clock& clock) : clock_(clock) {}
  std::int64_t now_ms() override { return clock_.now_ms(); }
  std::int64_t ticks_ns() override { return clock_.ticks_ns() + skipped_ns_; }
  void skip(std::int64_t ms) { skipped_ns_ += ms * 1'000'000; }

 private:
  Clock& clock_;
  std::int64_t skipped_ns_ = 0;
};

// The next messages of a topic, from the store's positions.
class Reading {
 public:
  Reading(Source& source, Store& store, const std::string& scope)
      : source_(source), store_(store), scope_(scope) {}

  Status read(std::size_t count) {
    constexpr std::int64_t wait_ms = 200;
    constexpr int empty_polls_max = 50;
    for (int empty_polls = 0; count > 0 && empty_polls < empty_polls_max;) {
      Batch batch = ONCE_TRY(source_.poll(count, wait_ms));
      const bool at_end = batch.drained || batch.event == Batch::Event::end;
      if (at_end && batch.deliveries.empty() && !ONCE_TRY(check_ends())) continue;
      switch (batch.event) {
        case Batch::Event::end: return {};
        case Batch::Event::revoked: continue;
        case Batch::Event::assigned: ONCE_TRY(begin(batch.partition)); continue;
        case Batch::Event::messages: break;
      }
      if (batch.deliveries.empty()) {
        if (batch.drained) return {};
        ++empty_polls;
        continue;
      }
      empty_polls = 0;
      ONCE_TRY(checks_.at(std::string(batch.partition)).check(scope_, batch));
      count -= std::min(count, batch.deliveries.size());
      batches_.push_back(std::move(batch));
    }
    return {};
  }

  const std::map<std::string, Position>& positions() const { return positions_; }
  const std::vector<Batch>& batches() const { return batches_; }

 private:
  Status begin(std::string_view name) {
    const std::string partition(name);
    positions_[partition] = ONCE_TRY(store_.position(scope_, partition));
    checks_[partition] = WitnessCheck(positions_[partition], source_.traits(), partition);
    SourceReplay* const replay = source_.replay();
    return replay == nullptr ? Status{} : checks_[partition].seek(*replay, partition);
  }
  Result<bool> check_ends() {
    SourceReplay* const replay = source_.replay();
    if (replay == nullptr) return true;
    bool known = true;
    for (auto& [partition, check] : checks_)
      known = ONCE_TRY(check.check_end(scope_, *replay, partition)) && known;
    return known;
  }

  Source& source_;
  Store& store_;
  const std::string& scope_;
  std::map<std::string, Position> positions_;
  std::map<std::string, WitnessCheck> checks_;
  std::vector<Batch> batches_;
};

// Takes one message through the lane to its end. A store that cannot be used is asked some times.
Status perform(Lane& lane, Stage& stage, HurriedClock& clock) {
  constexpr int troubles_max = 5;
  constexpr std::chrono::milliseconds pause(100);
  for (int troubles = 0; !lane.idle();) {
    const Lane::Step step = ONCE_TRY(lane.step());
    if (step.wait_ms > 0) clock.skip(step.wait_ms);
    auto trouble = stage.take_trouble();
    const bool is_stores = trouble && trouble->remedy != Remedy::park;
    if (!is_stores) continue;
    if (++troubles >= troubles_max) return fail(std::move(*trouble));
    std::this_thread::sleep_for(pause);
  }
  return {};
}

Status check_possible(const Source& source, const Handler& handler) {
  if (handler.outside())
    return fail(Remedy::stop, "config",
                "an effect outside the store cannot be tried: it could not be taken back");
  if (!source.traits().replayable)
    return fail(Remedy::stop, "config",
                "messages of this source cannot be tried: reading them takes them away");
  return {};
}

}  // namespace

Result<std::vector<Rehearsed>> rehearse(Source& source, Store& store, const Handler& handler,
                                        PipelineOptions options, std::size_t count, Clock& clock) {
  ONCE_TRY(check_possible(source, handler));
  options.batch_count_min = options.batch_count_max = 1;
  Reading reading(source, store, options.scope);
  ONCE_TRY(reading.read(count));

  HurriedClock hurried(clock);
  StoreClock store_clock(hurried);
  if (Records* const records = store.records()) {
    const std::int64_t now_ms = ONCE_TRY(records->describe(options.scope)).now_ms;
    if (now_ms > 0) store_clock.measured(now_ms);
  }
  std::vector<Rehearsed> rehearsed;
  rehearsed.reserve(count);
  Counters counters;
  Stage stage(store);
  Lane lane({.store = stage,
             .clock = hurried,
             .handler = handler,
             .options = options,
             .counters = counters,
             .store_clock = &store_clock,
             .on_outcome = [&stage](const Outcome& outcome) { stage.set_outcome(outcome); },
             .source = source.traits().name});
  for (const auto& [partition, position] : reading.positions()) lane.own(partition, position);
  for (const Batch& batch : reading.batches())
    for (const Delivery& delivery : batch.deliveries) {
      if (rehearsed.size() == count) break;
      Rehearsed& message = rehearsed.emplace_back();
      message.partition = batch.partition;
      message.offset = delivery.offset;
      if (delivery.has_key()) message.key = delivery.key;
      stage.set_message(message);
      Batch one;
      one.partition = batch.partition;
      one.deliveries.push_back(delivery);
      one.end_offset = delivery.offset + 1;
      one.memory = batch.memory;
      auto task = lane.prepare(std::move(one));
      message.id = Lane::ids(*task).front();
      lane.push(std::move(task));
      ONCE_TRY(perform(lane, stage, hurried));
    }
  return rehearsed;
}

}  // namespace once
