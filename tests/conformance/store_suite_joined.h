// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "conformance/store_suite_updates.h"

namespace once::testing {

// A family of statements, each run alone for every row of values, and for as many rows in one
// batch. Whatever a store makes of a batch, both come to the same.
class JoinedSuite : public UpdateSuite {
 protected:
  // What a parameter may be; a row of values has one of each place.
  enum class Kind : std::uint8_t { key, text, number, fraction, decimal, bytes };
  struct Member {
    std::string statement;  // `{}` is the table
    std::vector<Kind> kinds;
  };
  using Pool = std::vector<Value>;

  static constexpr std::size_t batch = 1000;
  static constexpr std::size_t keys = 300;
  static constexpr std::array<const char*, 3> tables{"alone", "counted", "uncounted"};

  void SetUp() override {
    UpdateSuite::SetUp();
    const bool is_mysql = dialect() == SqlDialect::mysql;
    for (const char* name : tables) {
      define(fmt::format(
          "CREATE TABLE {} (id BIGINT PRIMARY KEY, n BIGINT, d {}, t VARCHAR(200), "
          "b {}, x DECIMAL(40, 4))",
          name, is_mysql ? "DOUBLE" : "DOUBLE PRECISION", is_mysql ? "VARBINARY(200)" : "BYTEA"));
      define(fmt::format("CREATE TABLE {}_log (number {} PRIMARY KEY, v BIGINT)", name,
                         is_mysql ? "BIGINT AUTO_INCREMENT" : "BIGSERIAL"));
    }
  }

  static std::vector<Member> family(SqlDialect dialect) {
    using enum Kind;
    std::vector<Member> members{
        {"UPDATE {} SET n = CASE WHEN ? = ? THEN n + 1 ELSE n - 1 END WHERE id = ?",
         {text, text, key}},
        {"UPDATE {} SET n = CASE WHEN t = ? THEN n + 1 ELSE 0 END WHERE id = ?", {text, key}},
        {"UPDATE {} SET n = n + 1 WHERE id = ? AND ? <> ?", {key, text, text}},
        {"UPDATE {} SET n = n + 1 WHERE id = ? AND t >= ?", {key, text}},
        {"UPDATE {} SET t = GREATEST(?, ?) WHERE id = ?", {text, text, key}},
        {"UPDATE {} SET t = LEAST(t, ?) WHERE id = ?", {text, key}},
        {"UPDATE {} SET t = COALESCE(?, t) WHERE id = ?", {text, key}},
        {"UPDATE {} SET t = ?, n = n + ? WHERE id = ?", {text, number, key}},
        {"UPDATE {} SET n = GREATEST(n, ?) WHERE id = ?", {number, key}},
        {"UPDATE {} SET n = (n * 3 + ?) % 1009 WHERE id = ?", {number, key}},
        {"UPDATE {} SET d = d + ? WHERE id = ?", {fraction, key}},
        {"UPDATE {} SET x = x + ? WHERE id = ?", {decimal, key}},
        {"UPDATE {} SET x = ? WHERE id = ?", {decimal, key}},
        {"UPDATE {} SET x = x + ? WHERE id = ? AND x < ?", {decimal, key, decimal}},
        {"UPDATE {} SET b = ? WHERE id = ?", {bytes, key}},
        {"UPDATE {} SET n = n + 1 WHERE id = ? AND b = ?", {key, bytes}},
        {"INSERT INTO {}_log (v) VALUES (?)", {number}},
        {"DELETE FROM {} WHERE id = ? AND t = ?", {key, text}},
    };
    if (dialect != SqlDialect::mysql) return members;
    const std::vector<Member> only_there{
        {"UPDATE {} SET n = (? = ?) WHERE id = ?", {text, text, key}},
        {"UPDATE {} SET n = n + (? IN (?, 'a')) WHERE id = ?", {text, text, key}},
        {"UPDATE {} SET n = LAST_INSERT_ID(ABS(n + ?)) WHERE id = ?", {number, key}},
        {"UPDATE {} SET n = CAST(LAST_INSERT_ID() AS SIGNED) + ? WHERE id = ?", {number, key}},
        {"UPDATE {} SET n = (@seen := COALESCE(@seen, 0) + ?) WHERE id = ?", {number, key}},
        {"UPDATE {} SET t = RIGHT(CONCAT(t, ?), 40) WHERE id = ?", {text, key}},
        {"UPDATE {} SET t = IF(t = ?, UPPER(?), LOWER(?)) WHERE id = ?", {text, text, text, key}},
        {"UPDATE {} SET t = CONCAT(?, '/', ?) WHERE id = ?", {number, fraction, key}},
        {"UPDATE {} SET t = HEX(?) WHERE id = ?", {bytes, key}},
        {"UPDATE {} SET d = ? / ? WHERE id = ?", {number, fraction, key}},
        {"UPDATE {} SET x = ? / 7 WHERE id = ?", {number, key}},
        {"UPDATE {} SET x = ? * ? WHERE id = ?", {decimal, number, key}},
        {"INSERT INTO {}_log (v) VALUES (CAST(LAST_INSERT_ID() AS SIGNED) + ?)", {number}},
        {"INSERT INTO {}_log (v) VALUES (ROW_COUNT() + ?)", {number}},
        {"INSERT INTO {0}_log (v) SELECT count(*) + ? FROM {0}_log AS before_it", {number}},
        {"INSERT INTO {} (id, n, t) VALUES (?, ? = ?, GREATEST(?, ?)) ON DUPLICATE KEY UPDATE "
         "n = n + VALUES(n), t = IF(t = VALUES(t), 'same', VALUES(t))",
         {key, text, text, text, text}},
        {"REPLACE INTO {} (id, n, t, x) VALUES (?, ?, ?, 0)", {key, number, text}},
    };
    members.insert(members.end(), only_there.begin(), only_there.end());
    return members;
  }

  // Texts that some collations take for equal, numbers at their limits.
  Value pick(Kind kind) {
    static const Pool texts{"a", "A", "b", "a ", "", "ä", "Ä", "ae", "10", "9", " a", "Z", "z%"};
    static const Pool numbers{0, 1, -1, 7, 255, 1'000'000, -40};
    static const Pool fractions{0.1, 0.2, -2.5, 1.0 / 3, 1e10};
    static const Pool decimals{Decimal{"0.03"}, Decimal{"-1234567890123456789012.3400"},
                               Decimal{"7"}, Decimal{"1e3"}, Decimal{"1234567890123456.1"}};
    static const Pool blobs{Blob{"a"}, Blob{"A"}, Blob{"5"}, Blob{{"\0\xff", 2}}, Blob{""}};
    const auto of = [this](const Pool& pool) { return pool[random_() % pool.size()]; };
    switch (kind) {
      case Kind::key: return static_cast<std::int64_t>(random_() % (keys + 10));
      case Kind::text: return random_() % 25 == 0 ? Value(nullptr) : of(texts);
      case Kind::number: return random_() % 25 == 0 ? Value(nullptr) : of(numbers);
      case Kind::fraction: return of(fractions);
      case Kind::decimal: return of(decimals);
      case Kind::bytes: return of(blobs);
    }
    return nullptr;
  }

  // All tables as they were at first, and so are the numbers that logs give.
  void fill() {
    if (dialect() == SqlDialect::mysql)
      for (const char* name : tables) define(fmt::format("TRUNCATE TABLE {}_log", name));
    ASSERT_TRUE(outcome_of([](SqlTransaction& sql) -> Status {
      for (const char* name : tables) {
        ONCE_TRY(sql.execute(fmt::format("DELETE FROM {}", name)));
        ONCE_TRY(sql.execute(fmt::format("DELETE FROM {}_log", name)));
        for (std::size_t i = 0; i < keys; ++i)
          ONCE_TRY(sql.execute(fmt::format("INSERT INTO {} VALUES (?, ?, 0.5, ?, ?, 890.10)", name),
                               {i, i % 5, i % 2 == 0 ? "a" : "B", Blob{"a"}}));
      }
      return {};
    }));
  }

  // What the session remembers is the same before each run.
  static Status forget_session(SqlTransaction& sql) {
    if (sql.dialect() != SqlDialect::mysql) return {};
    ONCE_TRY(sql.run("SET @seen = 0"));
    ONCE_TRY(sql.query("SELECT LAST_INSERT_ID(5)"));
    return {};
  }

  Rows rows_of(const std::string& name) {
    Rows all = all_of(fmt::format("SELECT id, n, d, t, b, x FROM {} ORDER BY id", name));
    const Rows log = all_of(fmt::format("SELECT v FROM {}_log ORDER BY number", name));
    all.insert(all.end(), log.begin(), log.end());
    return all;
  }

  std::mt19937 random_{20'261'116};
};

TEST_P(JoinedSuite, a_batch_of_a_thousand_means_what_a_thousand_batches_of_one_mean) {
  for (const Member& member : family(dialect())) {
    fill();
    std::vector<std::vector<Value>> all(batch);
    for (auto& values : all)
      for (const Kind kind : member.kinds) values.push_back(pick(kind));
    const auto in = [&](const char* table) {
      return fmt::format(fmt::runtime(member.statement), table);
    };
    std::vector<std::int64_t> counts;
    const Status alone = outcome_of([&](SqlTransaction& sql) -> Status {
      ONCE_TRY(forget_session(sql));
      for (const auto& values : all) counts.push_back(ONCE_TRY(sql.run(in("alone"), values)));
      return {};
    });
    ASSERT_TRUE(alone) << alone.error().text;
    for (const char* table : {"counted", "uncounted"}) {
      const bool is_counted = table == std::string_view("counted");
      const Status joined = outcome_of([&](SqlTransaction& sql) -> Status {
        ONCE_TRY(forget_session(sql));
        for (std::size_t i = 0; i < all.size(); ++i)
          ONCE_TRY(sql.execute(in(table), all[i], is_counted ? rows(counts[i]) : Expect{}));
        return {};
      });
      EXPECT_TRUE(joined) << member.statement << ": " << joined.error().text;
      EXPECT_TRUE(rows_of("alone") == rows_of(table)) << member.statement << ' ' << table;
    }
  }
}

TEST_P(JoinedSuite, decimals_stay_exact_however_many_there_are) {
  if (dialect() == SqlDialect::sqlite) return;  // has no decimals
  for (const std::int64_t count : {1, 100}) {
    fill();
    ASSERT_TRUE(outcome_of([&](SqlTransaction& sql) -> Status {
      ONCE_TRY(sql.execute("UPDATE alone SET x = ? WHERE id < ?",
                           {Decimal{"1234567890123456789012345678890.10"}, count}, rows(count)));
      for (std::int64_t i = 0; i < count; ++i)
        ONCE_TRY(
            sql.execute("UPDATE alone SET x = x + ? WHERE id = ?", {Decimal{"0.03"}, i}, rows(1)));
      return {};
    }));
    const Rows found = all_of(fmt::format("SELECT x FROM alone WHERE id < {}", count));
    ASSERT_EQ(std::ssize(found), count);
    for (const Row& row : found)
      EXPECT_EQ(row[0], Field(std::string("1234567890123456789012345678890.1300")));
  }
}

}  // namespace once::testing
