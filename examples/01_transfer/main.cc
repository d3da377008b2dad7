// SPDX-License-Identifier: Apache-2.0
// Transfers of 100 from one account to another, with a flow table. See README.md.
//
//   example_01_transfer DIRECTORY [--rounds N]
#include <once/once.h>

#include "stage.h"

using namespace once;

namespace {

constexpr int transfer_count = 24;
constexpr int amount = 100;
constexpr int opening_balance = 1000;
constexpr const char* accounts[] = {"ann", "bob", "cleo", "dan"};

struct Transfer {
  std::string id;
  std::string from;
  std::string to;
};

std::vector<Transfer> transfers() {
  std::vector<Transfer> list;
  for (int n = 0; n < transfer_count; ++n)
    list.push_back({"T" + std::to_string(n), accounts[n % 4], accounts[(n + 1 + n / 4 % 3) % 4]});
  return list;
}

std::vector<Message> messages() {
  std::vector<Message> list;
  for (const Transfer& transfer : transfers())
    list.push_back({.id = transfer.id, .headers = {{"from", transfer.from}, {"to", transfer.to}}});
  return list;
}

// One side of a transfer. (transfer, account) is the key of the flow table: who comes second finds
// the row there and leaves the balance alone. "balance + 100" by itself could not tell.
Status book(SqlTransaction& bank, std::string_view transfer, std::string_view account, int change) {
  const UniqueAnswer answer = ONCE_TRY(
      unique(bank, "flow", {{"transfer", transfer}, {"account", account}}, {{"amount", change}}));
  if (answer == UniqueAnswer::present) return {};
  return bank.execute("UPDATE account SET balance = balance + ? WHERE name = ?", {change, account},
                      rows(1, parked("no such account")));
}

Handler transfer_handler() {
  return each([](const Delivery& transfer, SqlTransaction& bank) -> Result<Outcome> {
    const std::string_view* from = transfer.header("from");
    const std::string_view* to = transfer.header("to");
    if (from == nullptr || to == nullptr)
      return parked("a transfer goes from somebody to somebody");
    // Flow rows and balances become true in one commit, together with the position.
    ONCE_TRY(book(bank, transfer.id, *from, -amount));
    ONCE_TRY(book(bank, transfer.id, *to, amount));
    return applied();
  });
}

// Each transfer has its two rows, in order; each balance is what the rows say.
Status check(Store& bank) {
  std::vector<std::string> expected;
  for (const Transfer& transfer : transfers()) {
    expected.push_back(transfer.id + " " + transfer.from + " -100");
    expected.push_back(transfer.id + " " + transfer.to + " 100");
  }
  ONCE_TRY(stage::same(
      "flow", bank, "SELECT transfer || ' ' || account || ' ' || amount FROM flow ORDER BY rowid",
      expected));
  const Rows balances = ONCE_TRY(
      stage::ask(bank,
                 "SELECT name, balance, (SELECT SUM(amount) FROM flow WHERE account = name)"
                 " FROM account"));
  for (const Row& row : balances)
    ONCE_TRY(stage::equal("the balance of " + std::get<std::string>(row[0]),
                          std::get<std::int64_t>(row[1]),
                          opening_balance + std::get<std::int64_t>(row[2])));
  return {};
}

Result<std::string> run(const stage::Arguments& arguments) {
  auto bank = ONCE_TRY(open_store("sqlite:" + arguments.directory + "/bank.db"));
  ONCE_TRY(stage::set_up(
      *bank, {"CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, balance INTEGER)",
              "CREATE TABLE IF NOT EXISTS flow (transfer TEXT, account TEXT, amount INTEGER,"
              " PRIMARY KEY (transfer, account))",
              "INSERT OR IGNORE INTO account VALUES"
              " ('ann', 1000), ('bob', 1000), ('cleo', 1000), ('dan', 1000)"}));

  // No id rule: here it is the flow table that tells a transfer which was sent twice.
  PipelineOptions options;
  options.scope = "bank/transfers";
  for (int round = 1; round <= arguments.rounds; ++round) {
    ONCE_TRY(stage::send(arguments.directory, "transfers", "teller " + std::to_string(round),
                         stage::doubled(messages())));
    ONCE_TRY(stage::consume(arguments.directory, "transfers", *bank, transfer_handler(), options));
  }
  ONCE_TRY(check(*bank));
  return std::to_string(transfer_count) + " transfers, each booked once";
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = stage::arguments(argc, argv);
  if (!arguments) return stage::end(fail(arguments.error()));
  return stage::end(run(*arguments));
}
