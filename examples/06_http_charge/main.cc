// SPDX-License-Identifier: Apache-2.0
// A bank is told over HTTP to charge for an order, and its answers get lost. See README.md.
//
//   example_06_http_charge DIRECTORY [--rounds N]
#include <once/once.h>

#include "bank.h"
#include "stage.h"

using namespace once;

namespace {

constexpr int order_count = 24;

std::string order_id(int n) { return "order " + std::to_string(n); }
bool is_refused(int n) { return n % 10 == 7; }  // by the bank

std::vector<Message> orders() {
  std::vector<Message> list;
  for (int n = 0; n < order_count; ++n) list.push_back({.id = order_id(n)});
  return list;
}

// The reference is derived from the id of the order: the same at every attempt, also after a
// restart.
std::string path_of(const Ticket& ticket) { return "/charges/" + ticket.downstream_id(); }

// The effect is not in our store, so that no transaction can hold it. Around it is a claim: taken
// before, settled after. An effect that can be asked about is `Queryable`.
Queryable charge(bank::Address bank) {
  Queryable effect;
  effect.run = [bank](const Delivery& order, Ticket& ticket) -> Result<Outcome> {
    // An error goes on as it is: its remedy says whether the bank may have charged.
    const bank::Answer answer =
        ONCE_TRY(bank::call(bank, "POST", path_of(ticket), std::string(order.id)));
    if (answer.status == 200) return applied(answer.body);
    if (answer.status == 402) return rejected(answer.body);
    return fail(Remedy::recheck, "http", "the bank answers " + std::to_string(answer.status));
  };
  // The claim is in doubt: an answer was lost, or a process died before it could settle. The bank
  // knows.
  effect.ask = [bank](const Ticket& ticket) -> Resolution {
    const auto answer = bank::call(bank, "GET", path_of(ticket));
    if (answer && answer->status == 200) return {Resolution::Kind::happened, answer->body};
    if (answer && answer->status == 404) return {Resolution::Kind::did_not_happen, {}};
    return {Resolution::Kind::unknown, {}};
  };
  effect.options.lease_ms = 300;  // short: who starts again after a kill has to wait for it
  return effect;
}

// The bank has charged for each order once, in order, and none that it refused. We know it all.
Status check(const std::vector<std::string>& charged, Store& store, const std::string& scope) {
  std::vector<std::string> expected;
  for (int n = 0; n < order_count; ++n)
    if (!is_refused(n)) expected.push_back(order_id(n));
  ONCE_TRY(stage::same("the bank's book", charged, expected));
  for (int n = 0; n < order_count; ++n) {
    const auto claims = ONCE_TRY(store.claims()->claims(scope, std::nullopt, order_id(n), 1));
    const ClaimState wanted = is_refused(n) ? ClaimState::rejected : ClaimState::done;
    if (claims.empty() || claims[0].id != order_id(n) || claims[0].state != wanted)
      return fail(Remedy::stop, "books",
                  "the claim of " + order_id(n) + " is not " + name_of(wanted));
  }
  return {};
}

Result<std::string> run(const stage::Arguments& arguments) {
  const std::string book = arguments.directory + "/bank.txt";
  const bank::Address bank = ONCE_TRY(bank::open(book));
  auto store = ONCE_TRY(open_store("sqlite:" + arguments.directory + "/shop.db"));

  PipelineOptions options;
  options.scope = "shop/charges";
  options.id = IdRule{};
  options.retry.backoff_ms_max = 50;
  for (int round = 1; round <= arguments.rounds; ++round) {
    ONCE_TRY(stage::send(arguments.directory, "orders", "web " + std::to_string(round),
                         stage::doubled(orders())));
    ONCE_TRY(
        stage::consume(arguments.directory, "orders", *store, handler_of(charge(bank)), options));
  }
  ONCE_TRY(check(bank::charged_orders(book), *store, options.scope));
  return std::to_string(order_count) + " orders, each charged once, or refused";
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = stage::arguments(argc, argv);
  if (!arguments) return stage::end(fail(arguments.error()));
  return stage::end(run(*arguments));
}
