// SPDX-License-Identifier: Apache-2.0
#include "server_ledger.h"

#include <fmt/format.h>
#include <once/pipeline.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <thread>

#include "harness.h"

namespace once::bench {
namespace {

constexpr std::string_view scope = "bench";

// The accounts of a batch and what each gets, as a text that the server takes apart.
struct Changes {
  std::string accounts = "{";
  std::string amounts = "{";
  std::string pairs = "[";
};

Changes changes_of(std::span<const Work> work) {
  std::map<std::string_view, int> sums;
  for (const Work& one : work) ++sums[one.delivery->key];
  Changes changes;
  for (const auto& [account, amount] : sums) {
    const char* const comma = changes.pairs.size() > 1 ? "," : "";
    changes.accounts += fmt::format("{}{}", comma, account);
    changes.amounts += fmt::format("{}{}", comma, amount);
    changes.pairs += fmt::format("{}[{},{}]", comma, account, amount);
  }
  changes.accounts += '}';
  changes.amounts += '}';
  changes.pairs += ']';
  return changes;
}

Status pay_all(std::span<Work> work, SqlTransaction& transaction) {
  const Changes changes = changes_of(work);
  if (transaction.dialect() == SqlDialect::postgresql)
    return transaction.execute(
        "UPDATE account SET balance = balance + due.amount "
        "FROM unnest(?::integer[], ?::integer[]) AS due (account, amount) "
        "WHERE number = due.account",
        {changes.accounts, changes.amounts});
  return transaction.execute(
      "UPDATE account JOIN JSON_TABLE(?, '$[*]' COLUMNS (number INT PATH '$[0]', "
      "amount INT PATH '$[1]')) AS due ON account.number = due.number "
      "SET balance = balance + due.amount",
      {changes.pairs});
}

Handler pay(Way way) {
  if (way == Way::batch || way == Way::position_only) return batch(std::function(pay_all));
  const Expect expect = way == Way::each_expected ? rows(1, rejected("no such account")) : Expect{};
  return each(std::function(
      [expect](const Delivery& delivery, SqlTransaction& transaction) -> Result<Outcome> {
        ONCE_TRY(transaction.execute(update_account, {1, account_of(delivery.key)}, expect));
        return applied();
      }));
}

// Filling takes minutes: somebody who watches sees how far it is.
void show_progress(std::uint64_t done, std::uint64_t all) {
  static const bool is_watched = ::isatty(STDERR_FILENO) == 1;
  if (!is_watched) return;
  std::fprintf(stderr, "\r  %3u %% of %llu rows%s", static_cast<unsigned>(done * 100 / all),
               static_cast<unsigned long long>(all), done == all ? "\n" : "");
}

// Forgets as a pipeline does while there is something to forget, until it is destroyed.
class Forgetting {
 public:
  Forgetting(Store& store, std::int64_t horizon_ms)
      : thread_([this, &store, horizon_ms] {
          while (!stopping_) {
            rows_ += must(store.forget(scope, horizon_ms, 1000)).rows;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
        }) {}
  ~Forgetting() {
    stopping_ = true;
    thread_.join();
    if (rows_ == 0) give_up("there was nothing to forget");
  }

 private:
  std::atomic<bool> stopping_{false};
  std::size_t rows_ = 0;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace

ServerLedger::ServerLedger(const ServerKind& kind, const std::string& url)
    : kind_(kind), url_(url), peer_(kind.connect(url)) {
  make_accounts(kind, *peer_);
  store_ = must(kind.open_store(url));
}

std::int64_t ServerLedger::sum_of_balances() {
  return peer_->number("SELECT sum(balance) FROM account");
}

void ServerLedger::clear() {
  peer_->run("TRUNCATE TABLE processed");
  if (filled_ == 0) peer_->run("TRUNCATE TABLE once_ledger");
}

void ServerLedger::check_books(std::int64_t before, std::size_t count) {
  const std::int64_t paid = sum_of_balances() - before;
  if (paid != static_cast<std::int64_t>(count))
    give_up(fmt::format("{} messages had {} effects", count, paid));
}

std::vector<Message> ServerLedger::next_messages(IdKind ids, std::size_t count) {
  next_ += count;
  return make_messages(ids, next_ - count, count);
}

double ServerLedger::messages_per_s(Way way, IdKind ids, std::size_t count, std::size_t rows,
                                    std::size_t lanes) {
  clear();
  const std::vector<Message> messages = next_messages(ids, count);
  const std::int64_t before = sum_of_balances();
  LoadSource source(messages, lanes);
  PipelineOptions options;
  options.scope = scope;
  if (way != Way::position_only) options.id = IdRule{};
  options.batch_count_max = rows;
  options.lanes = lanes;
  const auto pipeline = must(Pipeline::make(source, *store_, pay(way), options));
  const Stopwatch watch;
  must(pipeline->run());
  const double seconds = watch.seconds();
  check_books(before, count);
  return static_cast<double>(count) / seconds;
}

double ServerLedger::recipe_messages_per_s(IdKind ids, std::size_t count, std::size_t connections) {
  clear();
  const std::vector<Message> messages = next_messages(ids, count);
  const std::int64_t before = sum_of_balances();
  std::vector<std::unique_ptr<Peer>> peers;
  for (std::size_t i = 0; i < connections; ++i) peers.push_back(kind_.connect(url_));
  std::vector<std::thread> threads;
  const Stopwatch watch;
  for (std::size_t i = 0; i < connections; ++i)
    threads.emplace_back([&messages, &peers, i] {
      for (std::size_t at = i; at < messages.size(); at += peers.size())
        peers[i]->handle(messages[at]);
    });
  for (std::thread& thread : threads) thread.join();
  const double seconds = watch.seconds();
  check_books(before, count);
  return static_cast<double>(count) / seconds;
}

double ServerLedger::set_based_messages_per_s(IdKind ids, std::size_t count, std::size_t rows) {
  clear();
  const std::vector<Message> messages = next_messages(ids, count);
  const std::int64_t before = sum_of_balances();
  const Stopwatch watch;
  for (std::size_t at = 0; at < count; at += rows)
    peer_->handle_all(std::span(messages).subspan(at, std::min(rows, count - at)), Dedup::yes);
  const double seconds = watch.seconds();
  check_books(before, count);
  return static_cast<double>(count) / seconds;
}

void ServerLedger::fill(IdKind ids, std::uint64_t rows) {
  clear();
  filled_ = rows;
  must(store_->take(scope, "load/0"));  // so that the scope has its number
  const std::int64_t number =
      peer_->number(fmt::format("SELECT number FROM once_name WHERE name = '{}'", scope));
  peer_->fill_ledger(ids, rows, number, [rows](std::uint64_t done) { show_progress(done, rows); });
  next_ = rows;
}

double ServerLedger::transaction_ms(std::span<const Message> messages) {
  std::vector<Delivery> deliveries(messages.size());
  std::vector<Entry> entries;
  std::vector<Work> work;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    deliveries[i].key = *messages[i].key;
    entries.push_back({.id = messages[i].id,
                       .fingerprint = {},
                       .born_ms = messages[i].timestamp_ms,
                       .partition = "load/0",
                       .offset = 0});
    work.push_back({.delivery = &deliveries[i], .message = i, .outcome = {}});
  }
  const Stopwatch watch;
  const auto transaction = must(store_->begin(scope));
  must(transaction->admit(entries));
  must(pay_all(work, *transaction->sql()));
  must(transaction->commit());
  return watch.seconds() * 1e3;
}

double ServerLedger::p99_ms(IdKind ids, std::size_t transactions, std::size_t rows,
                            bool forgetting) {
  const std::vector<Message> messages = next_messages(ids, transactions * rows);
  std::vector<double> times;
  {
    std::optional<Forgetting> beside;
    if (forgetting) beside.emplace(*store_, born_ms(filled_));
    for (std::size_t i = 0; i < transactions; ++i)
      times.push_back(transaction_ms(std::span(messages).subspan(i * rows, rows)));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() * 99 / 100];
}

}  // namespace once::bench
