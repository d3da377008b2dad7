// SPDX-License-Identifier: Apache-2.0
#include "run_servers/run_check_suite.h"
#include "run_servers/run_server_suite.h"
#include "run_servers/run_types_suite.h"
#include "testing/chaos_proxy.h"
#include "testing/postgres_home.h"

namespace once::testing {
namespace {

using Home = PostgresHome;

Lines tables_in(const std::string& url) {
  const auto connection = PgConnection::open(url, "test").value();
  const auto found =
      connection
          ->ask("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1")
          .value();
  Lines names;
  for (int row = 0; row < found->rows(); ++row) names.push_back(found->bytes(row, 0));
  return names;
}

RunKind postgres() {
  return {[] { return Home::in(Home::make_place()); },
          Home::administer,
          {"CREATE TYPE kinds AS ENUM ('cash', 'card')",
           "CREATE TABLE flow (n BIGSERIAL PRIMARY KEY, id TEXT UNIQUE, account VARCHAR(10) NOT "
           "NULL, amount SMALLINT CHECK (amount > 0), day DATE, kind kinds)",
           "CREATE TABLE account (name TEXT PRIMARY KEY, balance BIGINT NOT NULL)",
           "CREATE TABLE typed (n BIGSERIAL, id TEXT PRIMARY KEY, at TIMESTAMPTZ, ms BIGINT, flag "
           "BOOLEAN, price NUMERIC(40, 10))"},
          "COALESCE(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), 'none')",
          "price::text",
          "[[do]]\nsql = \"UPDATE account SET balance = balance + 1 WHERE name = 'ann' RETURNING "
          "balance, now()\"\ninto = { balance = \"integer\", at = \"timestamp\" }\n",
          {"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id LIKE "
           "'refuse%' THEN RAISE EXCEPTION 'not this one'; END IF; RETURN NEW; END $$",
           "CREATE TRIGGER refuse BEFORE INSERT ON flow FOR EACH ROW EXECUTE FUNCTION refuse()"},
          {"CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it "
           "says so' USING ERRCODE = substr(NEW.id, 7, 5); END $$",
           "CREATE TRIGGER say BEFORE INSERT ON flow FOR EACH ROW WHEN (NEW.id LIKE 'raise %') "
           "EXECUTE FUNCTION say()"},
          {"42501", "0A000", "42601", "42704", "42P01", "55000", "02000", "XX000", "25006"},
          {"40001", "40003", "55P03", "08006", "57P01", "57014", "53100"},
          tables_in};
}

INSTANTIATE_TEST_SUITE_P(Postgres, RunServer, ::testing::Values(postgres()));
INSTANTIATE_TEST_SUITE_P(Postgres, RunTypes, ::testing::Values(postgres()));
INSTANTIATE_TEST_SUITE_P(Postgres, RunCheck, ::testing::Values(postgres()));

// Values of a message in what the server compiles, looks up or guards by itself.
class PoisonValues : public RunServer {
 protected:
  // Three messages in `ids` with a bad value among ten with a good one: each is parked for itself.
  void expect_parked(const std::string& step, const std::string& good_value,
                     const std::string& bad_value, const std::string& words,
                     const std::string& retry = "") {
    SCOPED_TRACE(step);
    std::string lines;
    Lines good, bad;
    for (int i = 0; i < 13; ++i) {
      const bool is_bad = i == 0 || i == 5 || i == 12;
      const std::string id = "poison " + std::to_string(++sent_);
      (is_bad ? bad : good).push_back(id);
      lines += line(id, {{"what", is_bad ? bad_value : good_value}});
    }
    send(lines);
    std::string text = changed(plan(), "[[emit]]", step + "[[emit]]");
    text = changed(text, "[values]", retry + "[values]\nwhat = { json = \"/what\" }");
    const Answer answer = run(text, {"-o", "json"});
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_EQ(answer.json()["parked"], bad.size());
    good_.insert(good_.end(), good.begin(), good.end());
    expect_books(good_);
    Lines parked;
    for (const Json& row :
         run_once({"park", "ls", "--store", url_, "--scope", "deposits", "--all", "-o", "json"})
             .json()) {
      const std::string reason = row["reason"];
      if (reason.find(words) != std::string::npos) parked.push_back(row["id"]);
    }
    EXPECT_EQ(parked, bad);
  }

 private:
  int sent_ = 0;
  Lines good_;
};

TEST_P(PoisonValues, in_texts_that_the_server_reads_park_their_messages) {
  const auto step = [](const std::string& sql) {
    return "[[do]]\nsql = \"" + sql + "\"\nrows = 1\n";
  };
  expect_parked(step("SELECT 1 WHERE to_tsquery('english', :what) IS NOT NULL"), "cat", "cat & & d",
                "to_tsquery");
  expect_parked(step("SELECT 1 WHERE jsonb_path_exists('[1]', :what::jsonpath) IS NOT NULL"),
                "$[0]", "$[", "jsonpath");
  expect_parked(step("SELECT 1 WHERE :what::regclass IS NOT NULL"), "account", "nosuch", "nosuch");
  expect_parked(step("SELECT nextval(:what::text::regclass)"), "flow_n_seq", "no_seq", "no_seq");
}

TEST_P(PoisonValues, that_a_policy_for_rows_refuses_park_their_messages) {
  define("CREATE TABLE guarded (what TEXT)");
  define("CREATE POLICY only_ann ON guarded USING (true) WITH CHECK (what = 'ann')");
  define("ALTER TABLE guarded ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY");
  define(
      "CREATE FUNCTION guarded_insert(what TEXT) RETURNS void LANGUAGE sql SECURITY DEFINER AS "
      "'INSERT INTO guarded VALUES (what)'");
  define("CREATE ROLE guarded_owner_of_place");
  define("GRANT ALL ON guarded TO guarded_owner_of_place");
  define(
      "DO $$ BEGIN EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO guarded_owner_of_place', "
      "current_schema()); END $$");
  define("ALTER FUNCTION guarded_insert OWNER TO guarded_owner_of_place");
  expect_parked("[[do]]\nsql = \"SELECT guarded_insert(:what)\"\n", "ann", "eve",
                "row-level security");
  EXPECT_EQ(sql("SELECT DISTINCT what FROM guarded"), Lines{"ann"});
}

TEST_P(PoisonValues, that_make_a_statement_too_slow_park_their_messages) {
  define(
      "DO $$ BEGIN EXECUTE format('ALTER ROLE %I SET statement_timeout = 250', current_user); "
      "END $$");
  expect_parked("[[do]]\nsql = \"SELECT pg_sleep(:what::text::float)\"\n", "0", "100",
                "statement timeout", "[retry]\nattempts = 2\nbackoff = \"1ms..5ms\"\n");
  define(
      "DO $$ BEGIN EXECUTE format('ALTER ROLE %I RESET statement_timeout', current_user); END $$");
}

INSTANTIATE_TEST_SUITE_P(Postgres, PoisonValues, ::testing::Values(postgres()));

// The server says which type it wants.
class RunCheckTypes : public RunCheck {
 protected:
  static std::string typed(const std::string& type, const std::string& step) {
    return R"toml(scope = "types"
[source]
url = "file:${RUN_DIR}/deposits"
id = "json:/id"
[store]
url = "${RUN_URL}"
[run]
at_end = "stop"
[values]
at = { json = "/at", type = ")toml" +
           type + "\" }\n[[do]]\n" + step + "\n";
  }
};

TEST_P(RunCheckTypes, type_that_can_never_bind_is_refused_with_the_cast_to_write) {
  const std::string at = "sql = \"INSERT INTO typed (id, at) VALUES (:id, :at)\"";
  const std::string ms = "sql = \"INSERT INTO typed (id, ms) VALUES (:id, :at)\"";
  for (const char* type : {"milliseconds", "integer", "decimal", "number"})
    expect_refused(typed(type, at),
                   "and the database wants timestamp with time zone: declare it with type = "
                   "\"timestamp\", or, in SQL, write to_timestamp(:at / 1000.0)");
  expect_refused(typed("timestamp", ms), "and the database wants bigint: declare it with type = ");
  expect_refused(typed("bytes", ms), "and the database wants bigint");
  expect_refused(typed("boolean", at), "and the database wants timestamp with time zone");
  expect_refused(
      typed("milliseconds",
            "unique = { table = \"typed\", key = { id = \"id\" }, set = { at = \"at\" } }"),
      "and the database wants timestamp with time zone");
  define("CREATE DOMAIN moment AS timestamptz");
  define("ALTER TABLE typed ADD since moment");
  expect_refused(typed("integer", "sql = \"UPDATE typed SET since = :at WHERE id = :id\""),
                 "and the database wants timestamp with time zone");
}

// What --check refuses would have been refused for the message, and what it advises works.
TEST_P(RunCheckTypes, casts_that_are_advised_work) {
  send(line("a", {{"at", 1794793390250}}));
  const auto applied = [&](const std::string& text) {
    const Answer answer = run(text, {"-o", "json"});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    return answer.json()["applied"];
  };
  EXPECT_EQ(applied(typed("milliseconds",
                          "sql = \"INSERT INTO typed (id, at) VALUES (:id, "
                          "to_timestamp(:at / 1000.0))\"")),
            1);
  send(line("b", {{"at", 1794793390250}}));
  EXPECT_EQ(applied(typed("timestamp",
                          "sql = \"INSERT INTO typed (id, ms) VALUES (:id, 1000 * "
                          "extract(epoch FROM :at::timestamptz))\"")),
            1);
  send(line("c", {{"at", 1794793390250}}));
  EXPECT_EQ(applied(typed("timestamp", "sql = \"INSERT INTO typed (id, at) VALUES (:id, :at)\"")),
            1);
  EXPECT_EQ(
      sql("SELECT coalesce((extract(epoch FROM at) * 1000)::bigint, ms) FROM typed ORDER BY n"),
      (Lines{"1794793390250", "1794793390250", "1794793390250"}));
}

INSTANTIATE_TEST_SUITE_P(Postgres, RunCheckTypes, ::testing::Values(postgres()));

class RunTrips : public RunServer {
 protected:
  static std::string reading() {
    const std::string text = plan();
    return text.substr(0, text.find("[values]")) +
           "[[do]]\nsql = \"UPDATE account SET balance = balance + 1 WHERE name = 'ann' RETURNING "
           "balance\"\ninto = { balance = \"integer\" }\n"
           "[[do]]\nsql = \"INSERT INTO flow (id, account, amount) VALUES (:id, 'ann', 1)\"\n"
           "[[emit]]\nto = \"file:${RUN_DIR}/done\"\nbody = { balance = \"balance\" }\n";
  }
  // What a run over so many new messages costs on the way to the server and back.
  std::uint64_t trips_of(int from, int count) {
    std::string lines;
    for (int i = from; i < from + count; ++i) lines += line("m" + std::to_string(i));
    send(lines);
    ChaosProxy proxy(Home::server().port());
    const std::string port = ":" + std::to_string(Home::server().port());
    ::setenv("RUN_URL", changed(url_, port, ":" + std::to_string(proxy.port())).c_str(), 1);
    const Answer answer = run(reading(), {"-o", "json"});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_EQ(answer.json()["applied"], count);
    transactions_ = answer.json()["transactions"];
    return proxy.round_trips();
  }

  std::uint64_t transactions_ = 0;
};

// The values that only messages to emit use come back for a whole batch at once. What is left grows
// with batches and with what the relay reads at a time, and not with messages.
TEST_P(RunTrips, what_steps_read_costs_a_round_trip_for_each_batch_and_none_for_each_message) {
  trips_of(0, 1);  // makes the tables
  const std::uint64_t few = trips_of(1, 5);
  const std::uint64_t few_transactions = transactions_;
  const std::uint64_t many = trips_of(6, 500);
  const std::uint64_t batches = transactions_ - few_transactions;
  EXPECT_LT(batches, 10u);
  EXPECT_LE(many, few + 10 * batches + 40) << few << " for 5 messages";
  const Lines announced =
      run_once({"consume", "file:" + scratch_.path("done"), "-o", "json"}).lines();
  ASSERT_EQ(announced.size(), 506u);
  for (std::size_t i = 0; i < announced.size(); ++i)
    EXPECT_EQ(Json::parse(announced[i])["body"], "{\"balance\":" + std::to_string(i + 1) + "}");
  EXPECT_EQ(sql("SELECT count(*) FROM flow"), Lines{"506"});
}

#ifdef ONCE_SHIFTED_CLOCK
TEST_P(RunTrips, clocks_that_differ_are_told) {
  send(line("m0"));
  ::setenv("LD_PRELOAD", ONCE_SHIFTED_CLOCK, 1);
  const Answer answer = run(reading(), {"--log", "json"});
  ::unsetenv("LD_PRELOAD");
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.err.find("\"kind\":\"clocks_differ\""), std::string::npos) << answer.err;
  EXPECT_NE(answer.err.find("behind this machine's"), std::string::npos) << answer.err;
  EXPECT_EQ(sql("SELECT id FROM flow"), Lines{"m0"});
}
#endif

INSTANTIATE_TEST_SUITE_P(Postgres, RunTrips, ::testing::Values(postgres()));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::PostgresHome::server());
}
