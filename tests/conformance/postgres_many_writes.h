// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "testing/postgres_home.h"

namespace once::testing {

// Writes that only differ in their values, as a connection to PostgreSQL runs them: by one call of
// a function, or one by one. Both ways must come to the same.
class PostgresManyWrites : public ::testing::Test {
 protected:
  using Values = std::vector<Value>;
  static constexpr std::size_t many = 100;

  // What its writes were told, each on its own.
  struct Told {
    std::vector<std::int64_t> counts;  // of those before the first error
    std::optional<std::size_t> culprit;
    Error error;
    Status status;  // of the sync
  };

  void SetUp() override {
    connection_ = PgConnection::open(PostgresHome::in(place_), "test").value();
    // A row remembers which statement of the client it came from.
    ASSERT_TRUE(connection_->script(
        "CREATE TABLE effect (id INTEGER PRIMARY KEY, amount INTEGER CHECK (amount >= 0), "
        "sent TEXT NOT NULL DEFAULT current_query())"));
  }

  void write(std::string_view statement, std::size_t count,
             const std::function<Values(std::size_t)>& values, Told& told) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto then = [&told, i](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
        if (answer) {
          EXPECT_EQ(told.counts.size(), i) << "out of order";
          told.counts.push_back((*answer)->touched());
          return {};
        }
        EXPECT_FALSE(told.culprit) << "two culprits";
        told.culprit = i;
        told.error = answer.error();
        return tl::unexpected(answer.error());
      };
      const Values row = values(i);
      if (const Status sent = connection_->send(statement, row, then, SqlStage::statement); !sent) {
        told.culprit = i;
        told.error = sent.error();
        return;
      }
    }
  }
  // In a transaction that is committed, if it can be.
  Told transact(std::string_view statement, std::size_t count,
                const std::function<Values(std::size_t)>& values) {
    Told told;
    EXPECT_TRUE(connection_->send("BEGIN"));
    write(statement, count, values, told);
    if (!told.culprit) {
      EXPECT_TRUE(connection_->send("COMMIT", {}, {}, SqlStage::commit));
      told.status = connection_->sync();
    }
    EXPECT_TRUE(connection_->reset());
    return told;
  }
  Told insert(std::size_t count, const std::function<Values(std::size_t)>& values) {
    return transact("INSERT INTO effect (id, amount) VALUES (?, ?)", count, values);
  }
  static Values plain(std::size_t i) { return {i, 2 * i}; }

  std::int64_t number(std::string_view query) {
    return connection_->ask(query).value()->number(0, 0);
  }
  std::int64_t functions() {
    return number(
        "SELECT count(*) FROM pg_proc WHERE pronamespace = pg_my_temp_schema() "
        "AND proname LIKE 'once_each%'");
  }
  std::int64_t rows_by_call() {
    return number("SELECT count(*) FROM effect WHERE sent LIKE 'SELECT pg_temp.once_each%'");
  }
  // Every id is there once, with its amount.
  void expect_plain(std::size_t count) {
    const auto found = connection_->ask("SELECT id, amount FROM effect ORDER BY id").value();
    ASSERT_EQ(found->rows(), static_cast<int>(count));
    for (int i = 0; i < found->rows(); ++i) {
      EXPECT_EQ(found->number(i, 0), i);
      EXPECT_EQ(found->number(i, 1), 2 * i);
    }
  }

  const std::string place_ = PostgresHome::make_place();
  std::unique_ptr<PgConnection> connection_;
};

TEST_F(PostgresManyWrites, are_one_call_that_counts_rows_for_each) {
  const Told told = insert(many, plain);
  ASSERT_TRUE(told.status) << told.status.error().text;
  EXPECT_EQ(told.counts, std::vector<std::int64_t>(many, 1));
  expect_plain(many);
  EXPECT_EQ(rows_by_call(), static_cast<std::int64_t>(many));
  EXPECT_EQ(functions(), 1);
  const Told deleted = transact("DELETE FROM effect WHERE id / 3 = ?", many,
                                [](std::size_t i) { return Values{i}; });
  ASSERT_TRUE(deleted.status);
  ASSERT_EQ(deleted.counts.size(), many);
  for (std::size_t i = 0; i < many; ++i) EXPECT_EQ(deleted.counts[i], i < 33 ? 3 : i == 33 ? 1 : 0);
  EXPECT_EQ(functions(), 2);
  ASSERT_TRUE(insert(many, plain).status);  // the function is still there
  expect_plain(many);
  EXPECT_EQ(functions(), 2);
}

TEST_F(PostgresManyWrites, that_are_few_go_one_by_one) {
  ASSERT_TRUE(insert(15, plain).status);
  EXPECT_EQ(functions(), 0);
  EXPECT_EQ(rows_by_call(), 0);
  expect_plain(15);
}

TEST_F(PostgresManyWrites, of_a_transaction_that_is_rolled_back_take_the_function_with_them) {
  for (int round = 0; round < 3; ++round) {
    Told told;
    ASSERT_TRUE(connection_->send("BEGIN"));
    write("INSERT INTO effect (id, amount) VALUES (?, ?)", many, plain, told);
    ASSERT_TRUE(connection_->sync());
    ASSERT_EQ(told.counts.size(), many);
    ASSERT_TRUE(connection_->reset());
    EXPECT_EQ(functions(), 0);
  }
  const Told told = insert(many, plain);
  ASSERT_TRUE(told.status) << told.status.error().text;
  expect_plain(many);
  EXPECT_EQ(rows_by_call(), static_cast<std::int64_t>(many));
}

// As if each had been sent alone: in the first transaction, which makes the function, and later.
TEST_F(PostgresManyWrites, name_the_one_that_fails_and_tell_those_before_it_what_they_did) {
  const auto with = [](const Values& wrong) {
    return [wrong](std::size_t i) { return i == 77 ? wrong : plain(i); };
  };
  const std::vector<Values> wrongs{{5, 1}, {77, -1}, {nullptr, 1}, {77, 1e30}};
  const auto alone = [&](const Values& wrong) {
    Told told = insert(1, [](std::size_t) { return Values{5, 5}; });
    EXPECT_TRUE(told.status);
    told = insert(1, [&](std::size_t) { return wrong; });
    EXPECT_TRUE(connection_->ask("DELETE FROM effect"));
    return told;
  };
  const auto check = [&] {
    for (const Values& wrong : wrongs) {
      const Told expected = alone(wrong);
      const Told told = insert(many, with(wrong));
      ASSERT_FALSE(told.status);
      EXPECT_EQ(told.counts, std::vector<std::int64_t>(77, 1));
      EXPECT_EQ(told.culprit, 77u);
      EXPECT_EQ(told.error.tag, "constraint");
      // Behind this is the whole row, which says how it was sent, or the name of a parameter.
      const auto cut = [](const std::string& text) {
        return text.substr(0, std::min({text.find("\nDETAIL:  Failing"), text.find("\nCONTEXT:"),
                                        text.find(" (SQL state")}));
      };
      EXPECT_EQ(cut(told.error.text), cut(expected.error.text));
      expect_plain(0);
    }
  };
  check();
  ASSERT_TRUE(insert(many, plain).status);
  ASSERT_TRUE(connection_->ask("DELETE FROM effect"));
  check();
  ASSERT_TRUE(insert(many, plain).status);
  expect_plain(many);
}

TEST_F(PostgresManyWrites, fail_with_the_words_of_a_trigger) {
  ASSERT_TRUE(connection_->script(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF NEW.amount = 154 THEN RAISE EXCEPTION 'not %', NEW.amount USING ERRCODE = '23514', "
      "DETAIL = 'the detail', HINT = 'the hint'; END IF; "
      "IF NEW.amount = 155 THEN ASSERT false, 'no assertion'; END IF; RETURN NEW; END $$; "
      "CREATE TRIGGER refuse BEFORE INSERT ON effect FOR EACH ROW EXECUTE FUNCTION refuse()"));
  const auto until = [](std::size_t last) {
    return [last](std::size_t i) { return Values{i, i == 77 ? last : i}; };
  };
  ASSERT_TRUE(insert(70, until(0)).status);
  ASSERT_TRUE(connection_->ask("DELETE FROM effect"));
  for (const std::size_t amount : {154u, 155u}) {
    const Told alone = insert(1, [&](std::size_t) { return Values{77, amount}; });
    const Told told = insert(many, until(amount));
    ASSERT_FALSE(told.status);
    EXPECT_EQ(told.culprit, 77u);
    EXPECT_EQ(told.error, alone.error);
    EXPECT_NE(told.error.text.find("refuse()"), std::string::npos) << told.error.text;
  }
  EXPECT_EQ(functions(), 1);
  expect_plain(0);
}

TEST_F(PostgresManyWrites, are_not_committed_behind_one_that_fails) {
  ASSERT_TRUE(insert(many, plain).status);
  Told told;
  ASSERT_TRUE(connection_->send("BEGIN"));
  ASSERT_TRUE(connection_->send("UPDATE effect SET amount = 0 WHERE id = ?", {0}));
  write(
      "INSERT INTO effect (id, amount) VALUES (?, ?)", many,
      [](std::size_t i) {
        return Values{i == 50 ? 7 : 1000 + i, i};
      },
      told);
  ASSERT_TRUE(connection_->send("UPDATE effect SET amount = 0 WHERE id = ?", {1}));
  ASSERT_TRUE(connection_->send("COMMIT", {}, {}, SqlStage::commit));
  const Status failed = connection_->sync();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().tag, "constraint");
  EXPECT_EQ(told.culprit, 50u);
  ASSERT_TRUE(connection_->reset());
  expect_plain(many);
}

TEST_F(PostgresManyWrites, hold_no_text_that_the_server_does_not_take) {
  ASSERT_TRUE(connection_->script("CREATE TABLE word (id INTEGER, word TEXT)"));
  for (const std::string& bad : {std::string("\xff"), std::string("a\0b", 3),
                                 std::string("\xed\xa0\x80"), std::string("\xc3")}) {
    for (int round = 0; round < 2; ++round) {
      const Told told = transact("INSERT INTO word VALUES (?, ?)", many, [&](std::size_t i) {
        return Values{i, i == 41 && round == 0 ? std::string_view(bad) : "good"};
      });
      EXPECT_EQ(told.culprit, round == 0 ? std::optional<std::size_t>(41) : std::nullopt);
      EXPECT_EQ(told.error.tag, round == 0 ? "constraint" : "") << told.error.text;
    }
  }
  EXPECT_EQ(number("SELECT count(*) FROM word"), 4 * static_cast<std::int64_t>(many));
}

TEST_F(PostgresManyWrites, without_the_right_to_make_functions_go_one_by_one) {
  const auto as = [&](const std::string& user, const std::string& options) {
    std::string url = PostgresHome::in(place_) + options;
    if (user.empty()) return PgConnection::open(url, "test").value();
    const std::string administrator = "once:once-test-secret@";
    url.replace(url.find(administrator), administrator.size(), user + ":secret@");
    return PgConnection::open(url, "test").value();
  };
  PostgresHome::administer(fmt::format(
      "CREATE ROLE {0}_user LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA {0} TO {0}_user; "
      "GRANT ALL ON {0}.effect TO {0}_user; "
      "DO $$ BEGIN EXECUTE 'REVOKE TEMP ON DATABASE ' || current_database() || ' FROM PUBLIC'; "
      "END $$",
      place_));
  connection_ = as(place_ + "_user", "");
  const Told told = insert(many, plain);
  PostgresHome::administer(
      "DO $$ BEGIN EXECUTE 'GRANT TEMP ON DATABASE ' || current_database() || ' TO PUBLIC'; END "
      "$$");
  ASSERT_TRUE(told.status) << told.status.error().text;
  EXPECT_EQ(told.counts, std::vector<std::int64_t>(many, 1));
  EXPECT_EQ(rows_by_call(), 0);
  expect_plain(many);
  // A limit for one statement is none for all of them.
  ASSERT_TRUE(connection_->ask("DELETE FROM effect"));
  connection_ = as("", "%20-cstatement_timeout%3D60s");
  ASSERT_TRUE(insert(many, plain).status);
  EXPECT_EQ(rows_by_call(), 0);
  expect_plain(many);
}

// Statements that a function would not run as they are.
TEST_F(PostgresManyWrites, that_fit_no_function_go_one_by_one) {
  const auto check = [&](std::string_view statement,
                         const std::function<Values(std::size_t)>& row) {
    const Told told = transact(statement, many, row);
    ASSERT_TRUE(told.status) << told.status.error().text;
    EXPECT_EQ(told.counts, std::vector<std::int64_t>(many, 1)) << statement;
    EXPECT_EQ(rows_by_call(), 0) << statement;
    EXPECT_EQ(functions(), 0) << statement;
    expect_plain(many);
    ASSERT_TRUE(connection_->ask("DELETE FROM effect"));
  };
  check("INSERT INTO effect (id, amount) VALUES (?, ?) RETURNING id", plain);
  check("INSERT INTO effect (id, amount) VALUES (?, ?);", plain);
  check("INSERT INTO effect (id, amount) VALUES (?, 2 * $1)",
        [](std::size_t i) { return Values{i}; });
  std::vector<std::string> arrays;
  for (std::size_t i = 0; i < many; ++i) arrays.push_back(fmt::format("{{{},{}}}", i, 2 * i));
  check("INSERT INTO effect (id, amount) SELECT a[1], a[2] FROM (SELECT ?::integer[] AS a) AS b",
        [&](std::size_t i) { return Values{arrays[i]}; });
  check("INSERT INTO effect (id, amount) SELECT ?, ? FROM pg_class WHERE oid = ?::regclass",
        [](std::size_t i) {
          return Values{i, 2 * i, "effect"};
        });
}

TEST_F(PostgresManyWrites, may_hold_names_and_comments_of_any_kind) {
  const Told told = transact(
      "INSERT INTO effect AS once_p1 (id, amount) -- $once$ ?\n"
      "SELECT once_count, once_row FROM (SELECT ?::integer, ?::integer) AS f (once_count, "
      "once_row) "
      "WHERE '$once$ ;' <> $x$ ? $x$ -- the end ?",
      many, plain);
  ASSERT_TRUE(told.status) << told.status.error().text;
  expect_plain(many);
  EXPECT_EQ(rows_by_call(), static_cast<std::int64_t>(many));
}

// The same values by a call and one by one: no difference in any column.
class PostgresTypes : public PostgresManyWrites {
 protected:
  void SetUp() override {
    PostgresManyWrites::SetUp();
    ASSERT_TRUE(connection_->script(
        "CREATE TYPE mood AS ENUM ('sad', 'glad'); "
        "CREATE DOMAIN short AS varchar(5) CHECK (value <> 'never'); "
        "CREATE DOMAIN needed AS integer NOT NULL; CREATE TYPE pair AS (a integer, b text); "
        "CREATE TABLE one (i integer, a smallint, b bigint, c numeric(12, 3), d real, "
        "e double precision, f boolean, g varchar(7), h char(6), j timestamptz, k date, "
        "l interval, m uuid, n jsonb, o bytea, p mood, q short, r needed, s pair, t inet, "
        "u bit(3)); CREATE TABLE two (LIKE one)"));
  }
  static std::string insert_into(std::string_view table) {
    std::string made = fmt::format("INSERT INTO {} VALUES (?", table);
    for (int i = 0; i < 20; ++i) made += ", ?";
    return made + ")";
  }

  const std::string bytes_{"\0\\'\xff", 4};
  const std::vector<Values> samples_{{1,
                                      2,
                                      std::numeric_limits<std::int64_t>::max(),
                                      1.0005,
                                      0.1,
                                      0.1,
                                      true,
                                      "a b",
                                      "ab",
                                      "2024-02-29 12:00:00+01",
                                      "2024-02-29",
                                      "1 day 2 hours",
                                      "0190163d-8694-739b-aea5-966c26f8ad91",
                                      "{\"a\": [1, null]}",
                                      Blob{bytes_},
                                      "glad",
                                      "sho't",
                                      7,
                                      "(1,\"x y\")",
                                      "10.0.0.1",
                                      "101"},
                                     {-1,
                                      -2,
                                      std::numeric_limits<std::int64_t>::min(),
                                      "12.5",
                                      std::nan(""),
                                      std::numeric_limits<double>::infinity(),
                                      0,
                                      "",
                                      "",
                                      "infinity",
                                      "-infinity",
                                      "-3 mons",
                                      "{0190163d8694739baea5966c26f8ad91}",
                                      "\"\\\\\"",
                                      "\\xdeadbeef",
                                      "sad",
                                      "",
                                      -7,
                                      "(,)",
                                      "::1/64",
                                      "000"},
                                     Values(17, nullptr)};
};

TEST_F(PostgresTypes, get_the_same_values_from_many_writes_as_from_each_alone) {
  const auto row = [&](std::size_t i) {
    Values values = samples_[i % samples_.size()];
    if (values.size() == 17) values.insert(values.end(), {0, nullptr, nullptr, nullptr});
    return values;
  };
  const Told by_call = transact(insert_into("one"), 30, row);
  ASSERT_TRUE(by_call.status) << by_call.status.error().text;
  EXPECT_EQ(functions(), 1);
  for (std::size_t i = 0; i < 30; ++i) ASSERT_TRUE(connection_->ask(insert_into("two"), row(i)));
  EXPECT_EQ(number("SELECT count(*) FROM one"), 30);
  EXPECT_EQ(number("SELECT count(*) FROM (SELECT one::text FROM one EXCEPT SELECT two::text "
                   "FROM two) AS different"),
            0);
}

}  // namespace once::testing
