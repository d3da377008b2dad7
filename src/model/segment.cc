// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/identity.h>
#include <once/key_value.h>
#include <once/sql.h>

#include <charconv>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>

#include "model/ledger.h"

namespace once {
namespace {

constexpr std::string_view counter_scope = "once.ids";

struct Range {
  std::int64_t next = 0;
  std::int64_t end = 0;  // after the last

  bool empty() const { return next == end; }
};

Result<std::int64_t> counter_value(const std::string& text, const std::string& name) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    return fail(Remedy::stop, "corrupt", fmt::format("the counter \"{}\" is not a number", name));
  return number;
}

Status check_room(std::int64_t last, const SegmentOptions& options) {
  if (last > std::numeric_limits<std::int64_t>::max() - options.range_count)
    return fail(Remedy::stop, "exhausted",
                fmt::format("the counter \"{}\" has no numbers left", options.name));
  return {};
}

// Both answer the last number that was given out before; the range follows it.
Result<std::int64_t> draw_key_value(KeyValueTransaction& transaction,
                                    const SegmentOptions& options) {
  const std::string key = "once_counter/" + options.name;
  const auto stored = ONCE_TRY(transaction.get(key));
  const std::int64_t last = stored ? ONCE_TRY(counter_value(*stored, options.name)) : 0;
  ONCE_TRY(check_room(last, options));
  ONCE_TRY(transaction.put(key, std::to_string(last + options.range_count)));
  return last;
}

Result<std::int64_t> draw_sql(SqlTransaction& transaction, const SegmentOptions& options) {
  // The write comes first: it locks the row, so that what is read after it is ours alone. A row
  // that it did not find may be there a moment later, and would be another's.
  if (ONCE_TRY(transaction.run("UPDATE once_counter SET last = last + ? WHERE name = ?",
                               {options.range_count, options.name})) == 0) {
    ONCE_TRY(transaction.execute("INSERT INTO once_counter (name, last) VALUES (?, ?)",
                                 {options.name, options.range_count}));
    return 0;
  }
  const Rows found =
      ONCE_TRY(transaction.query("SELECT last FROM once_counter WHERE name = ?", {options.name}));
  const auto* last = found.empty() ? nullptr : std::get_if<std::int64_t>(&found[0].at(0));
  if (last == nullptr)
    return fail(Remedy::stop, "corrupt",
                fmt::format("the counter \"{}\" is not a number", options.name));
  ONCE_TRY(check_room(*last, options));
  return *last - options.range_count;
}

// Numbers come from `current_`; one of the callers draws `next_` while the others go on.
class SegmentIds final : public IdMaker {
 public:
  SegmentIds(Store& store, const SegmentOptions& options) : store_(store), options_(options) {}

  Result<std::string> next() override {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (current_.empty() && next_) {
        current_ = *next_;
        next_.reset();
      }
      if (wants_range()) {
        auto drawn = refill(lock);
        // While numbers are left, a store that is away hurts nobody: a later caller draws.
        if (!drawn && current_.empty() && !next_) return fail(std::move(drawn).error());
        patience_ = drawn ? 0 : options_.range_count / 20;
      }
      if (!current_.empty()) return std::to_string(current_.next++);
      if (drawing_) drawn_.wait(lock, [&] { return !drawing_; });
    }
  }

 private:
  bool wants_range() {
    if (next_ || drawing_) return false;
    if (current_.empty()) return true;
    if (current_.end - current_.next > options_.range_count / 2) return false;
    return patience_-- <= 0;
  }

  Status refill(std::unique_lock<std::mutex>& lock) {
    drawing_ = true;
    lock.unlock();
    auto drawn = draw();
    lock.lock();
    drawing_ = false;
    drawn_.notify_all();
    next_ = ONCE_TRY(std::move(drawn));
    return {};
  }

  // A draw whose commit is not certain is given up: its numbers are skipped, never repeated.
  Result<Range> draw() {
    constexpr int attempts_max = 20;
    for (int attempt = 1;; ++attempt) {
      auto range = draw_once();
      if (range || attempt == attempts_max) return range;
      const bool rival = range.error().tag == "conflict" || range.error().tag == "constraint";
      if (!rival && range.error().remedy != Remedy::recheck) return range;
    }
  }

  Result<Range> draw_once() {
    auto transaction = ONCE_TRY(store_.begin(counter_scope));
    const std::int64_t last = transaction->sql() != nullptr
                                  ? ONCE_TRY(draw_sql(*transaction->sql(), options_))
                                  : ONCE_TRY(draw_key_value(*transaction->key_value(), options_));
    ONCE_TRY(transaction->commit());
    return Range{last + 1, last + 1 + options_.range_count};
  }

  Store& store_;
  const SegmentOptions options_;
  std::mutex mutex_;
  std::condition_variable drawn_;
  Range current_;
  std::optional<Range> next_;
  bool drawing_ = false;
  std::int64_t patience_ = 0;  // ids to give out before a failed draw is tried again
};

}  // namespace

Result<std::unique_ptr<IdMaker>> make_segment_ids(Store& store, const SegmentOptions& options) {
  if (options.name.empty() || options.name.size() > name_bytes_max || options.range_count < 1)
    return fail(Remedy::stop, "config",
                "segment ids need a name of 1 to 255 bytes and a range of at least one id");
  const StoreTraits traits = store.traits();
  if (!traits.sql && !traits.key_value)
    return fail(Remedy::stop, "config",
                fmt::format("{} can hold no counter; use an SQL or key-value store", traits.name));
  return std::make_unique<SegmentIds>(store, options);
}

}  // namespace once
