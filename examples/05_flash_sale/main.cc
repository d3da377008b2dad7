// SPDX-License-Identifier: Apache-2.0
// A flash sale and a vote, by people who click twice. See README.md.
//
//   example_05_flash_sale DIRECTORY [--rounds N]
#include <once/once.h>

#include <map>

#include "stage.h"

using namespace once;

namespace {

constexpr int people_count = 25;
constexpr int pieces_for_sale = 10;
constexpr std::int64_t token_good_for_ms = 24 * 3600 * 1000LL;

std::string person(int n) { return "person " + std::to_string(n); }
std::string choice_of(int n) { return n % 3 == 0 ? "no" : "yes"; }

using Tokens = std::map<std::string, std::string>;

// Everybody opens the page and gets a token with it, once. The table "page" stands for the
// browsers: it is the only place that knows the tokens, the shop keeps their digests.
Result<Tokens> open_pages(Store& shop) {
  auto transaction = ONCE_TRY(shop.begin("pages"));
  SqlTransaction& sql = *transaction->sql();
  Tokens tokens;
  for (const Row& row : ONCE_TRY(sql.query("SELECT person, token FROM page")))
    tokens[std::get<std::string>(row[0])] = std::get<std::string>(row[1]);
  for (int n = 0; n < people_count; ++n) {
    std::string& token = tokens[person(n)];
    if (!token.empty()) continue;
    token = ONCE_TRY(issue_token(sql, "token", person(n), token_good_for_ms));
    ONCE_TRY(sql.execute("INSERT INTO page (person, token) VALUES (?, ?)", {person(n), token}));
  }
  ONCE_TRY(transaction->commit());
  return tokens;
}

// Every click is a message of its own, with an id of its own: only token and person tell that two
// clicks mean the same.
std::vector<Message> clicks(const Tokens& tokens, int round) {
  std::vector<Message> list;
  const auto click = [&](const char* what, int n, std::string body) {
    const std::string id = "click " + std::to_string(round) + "." + std::to_string(list.size());
    list.push_back(
        {.id = id, .key = person(n), .body = std::move(body), .headers = {{"what", what}}});
  };
  for (int n = 0; n < people_count; ++n) {
    for (int again = 0; again < 1 + n % 3; ++again) click("buy", n, tokens.at(person(n)));
    for (int again = 0; again < 1 + n % 2; ++again) click("vote", n, choice_of(n));
  }
  return list;
}

// The token is used up in the transaction that takes the piece from the stock: none without the
// other.
Result<Outcome> buy(const Delivery& click, SqlTransaction& shop) {
  switch (ONCE_TRY(redeem_token(shop, "token", click.key, click.body))) {
    case TokenAnswer::redeemed: break;
    case TokenAnswer::used: return rejected("clicked twice");
    case TokenAnswer::unknown: return rejected("this page was never opened");
    case TokenAnswer::expired: return rejected("the page was open for too long");
  }
  const std::int64_t taken =
      ONCE_TRY(shop.run("UPDATE sale SET pieces = pieces - 1 WHERE item = 'phone' AND pieces > 0"));
  if (taken == 0) return rejected("sold out");
  ONCE_TRY(shop.execute("INSERT INTO purchase (person) VALUES (?)", {click.key}));
  return applied("bought");
}

// One vote for each person, counted with the row that says so.
Result<Outcome> vote(const Delivery& click, SqlTransaction& shop) {
  const UniqueAnswer answer = ONCE_TRY(
      unique(shop, "vote", {{"poll", "color"}, {"person", click.key}}, {{"choice", click.body}}));
  if (answer == UniqueAnswer::present) return rejected("has voted");
  ONCE_TRY(shop.execute("UPDATE tally SET votes = votes + 1 WHERE choice = ?", {click.body},
                        rows(1, parked("there is no such choice"))));
  return applied("counted");
}

Handler click_handler() {
  return each([](const Delivery& click, SqlTransaction& shop) -> Result<Outcome> {
    const std::string_view* what = click.header("what");
    if (what != nullptr && *what == "buy") return buy(click, shop);
    if (what != nullptr && *what == "vote") return vote(click, shop);
    return parked("a click on what?");
  });
}

// The first ten have a phone each, everybody has voted once.
Status check(Store& shop) {
  std::vector<std::string> buyers;
  for (int n = 0; n < pieces_for_sale; ++n) buyers.push_back(person(n));
  ONCE_TRY(stage::same("purchases", shop, "SELECT person FROM purchase ORDER BY n", buyers));
  std::vector<std::string> votes;
  std::map<std::string, std::int64_t> counted;
  for (int n = 0; n < people_count; ++n) {
    votes.push_back(person(n) + " " + choice_of(n));
    ++counted[choice_of(n)];
  }
  ONCE_TRY(
      stage::same("votes", shop, "SELECT person || ' ' || choice FROM vote ORDER BY rowid", votes));
  for (const Row& row : ONCE_TRY(stage::ask(shop, "SELECT choice, votes FROM tally"))) {
    const std::string choice = std::get<std::string>(row[0]);
    ONCE_TRY(
        stage::equal("the tally of " + choice, std::get<std::int64_t>(row[1]), counted[choice]));
  }
  const Rows left = ONCE_TRY(stage::ask(shop, "SELECT pieces FROM sale"));
  return stage::equal("the stock", std::get<std::int64_t>(left[0][0]), 0);
}

Result<std::string> run(const stage::Arguments& arguments) {
  auto shop = ONCE_TRY(open_store("sqlite:" + arguments.directory + "/shop.db"));
  ONCE_TRY(stage::set_up(
      *shop, {"CREATE TABLE IF NOT EXISTS token (digest VARCHAR(32) PRIMARY KEY,"
              " issued_ms BIGINT NOT NULL, expires_ms BIGINT NOT NULL, used_ms BIGINT NOT NULL)",
              "CREATE TABLE IF NOT EXISTS page (person TEXT PRIMARY KEY, token TEXT)",
              "CREATE TABLE IF NOT EXISTS sale (item TEXT PRIMARY KEY, pieces INTEGER)",
              "CREATE TABLE IF NOT EXISTS purchase (n INTEGER PRIMARY KEY, person TEXT)",
              "CREATE TABLE IF NOT EXISTS vote (poll TEXT, person TEXT, choice TEXT,"
              " PRIMARY KEY (poll, person))",
              "CREATE TABLE IF NOT EXISTS tally (choice TEXT PRIMARY KEY, votes INTEGER)",
              "INSERT OR IGNORE INTO sale VALUES ('phone', 10)",
              "INSERT OR IGNORE INTO tally VALUES ('yes', 0), ('no', 0)"}));
  const Tokens tokens = ONCE_TRY(open_pages(*shop));

  PipelineOptions options;
  options.scope = "shop/clicks";
  options.id = IdRule{};  // of the click: tells what the network doubles, not what people do
  for (int round = 1; round <= arguments.rounds; ++round) {
    ONCE_TRY(stage::send(arguments.directory, "clicks", "web " + std::to_string(round),
                         stage::doubled(clicks(tokens, round))));
    ONCE_TRY(stage::consume(arguments.directory, "clicks", *shop, click_handler(), options));
  }
  ONCE_TRY(check(*shop));
  return std::to_string(pieces_for_sale) + " phones for " + std::to_string(pieces_for_sale) +
         " buyers, " + std::to_string(people_count) + " votes by as many people";
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = stage::arguments(argc, argv);
  if (!arguments) return stage::end(fail(arguments.error()));
  return stage::end(run(*arguments));
}
