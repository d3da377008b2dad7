// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run_servers/run_server_suite.h"

namespace once::testing {

// What a column gives back is what the message said: moments, truth and money.
class RunTypes : public RunServer {
 protected:
  static std::string plan() {
    return R"toml(scope = "types"
[source]
url = "file:${RUN_DIR}/deposits"
id = "json:/id"
[store]
url = "${RUN_URL}"
[run]
at_end = "stop"
[values]
at = { json = "/at", type = "timestamp", null = true }
ms = { json = "/at", type = "milliseconds", null = true }
flag = { json = "/flag", type = "boolean", null = true }
price = { json = "/price", type = "decimal", null = true }
[[do]]
sql = "INSERT INTO typed (id, at, ms) VALUES (:id, :at, :ms)"
[[do]]
sql = "UPDATE typed SET flag = :flag, price = :price WHERE id = :id"
rows = 1
)toml";
  }

  // As the database prints it.
  Lines column(const std::string& expression) {
    return sql("SELECT " + expression + " FROM typed ORDER BY n");
  }

  void apply(const std::vector<Json>& messages) {
    std::string lines;
    for (std::size_t i = 0; i < messages.size(); ++i)
      lines += line("m" + std::to_string(i), messages[i]);
    send(lines);
    const Answer answer = run(plan(), {"-o", "json"});
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_EQ(answer.json()["applied"], messages.size()) << answer.out;
  }
};

TEST_P(RunTypes, moments_keep_their_fraction_whatever_zone_they_were_written_in) {
  apply({{{"at", "2026-11-16T01:43:10.25Z"}},
         {{"at", "2026-11-16T01:43:10.123456+05:30"}},
         {{"at", 1794793390250}},
         // Summer time begins and ends in Berlin: two moments with the same local time.
         {{"at", "2026-03-29T03:00:00+02:00"}},
         {{"at", "2026-10-25T02:30:00+02:00"}},
         {{"at", "2026-10-25T02:30:00+01:00"}},
         {{"at", "2024-02-29T23:59:59.999999Z"}},
         {{"at", "1969-12-31T23:59:59.5Z"}},
         {{"at", "1000-01-01T00:00:00Z"}},
         {{"at", "9999-12-31T23:59:59.999999Z"}},
         {{"at", nullptr}}});
  EXPECT_EQ(column(GetParam().printed_at),
            (Lines{"2026-11-16 01:43:10.250000", "2026-11-15 20:13:10.123456",
                   "2026-11-16 01:43:10.250000", "2026-03-29 01:00:00.000000",
                   "2026-10-25 00:30:00.000000", "2026-10-25 01:30:00.000000",
                   "2024-02-29 23:59:59.999999", "1969-12-31 23:59:59.500000",
                   "1000-01-01 00:00:00.000000", "9999-12-31 23:59:59.999999", "none"}));
  EXPECT_EQ(
      column("COALESCE(ms, 0)"),
      (Lines{"1794793390250", "1794773590123", "1794793390250", "1774746000000", "1792888200000",
             "1792891800000", "1709251199999", "-500", "-30610224000000", "253402300799999", "0"}));
}

TEST_P(RunTypes, time_outside_of_the_years_is_parked) {
  send(line("a", {{"at", "9999-12-31T23:59:59-01:00"}}) + line("b", {{"at", 1794793390250000}}));
  const Answer answer = run(plan(), {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["parked"], 2);
  EXPECT_EQ(column("id"), Lines{});
}

// More than sixteen equal updates travel as one.
TEST_P(RunTypes, truth_and_money_arrive_exactly_one_by_one_and_together) {
  const Lines prices{"0.1", "123456789012345678.0123456789", "-0.0000000001", "1e3", "-7.50"};
  const Lines printed{"0.1000000000", "123456789012345678.0123456789", "-0.0000000001",
                      "1000.0000000000", "-7.5000000000"};
  std::vector<Json> messages;
  Lines expected_prices;
  Lines expected_flags;
  for (std::size_t i = 0; i < 40; ++i) {
    messages.push_back({{"price", prices[i % prices.size()]}});
    if (i % 3 != 2) messages.back()["flag"] = i % 3 == 1;
    expected_prices.push_back(printed[i % prices.size()]);
    expected_flags.push_back(i % 3 == 2 ? "none" : i % 3 == 1 ? "yes" : "no");
  }
  apply(messages);
  EXPECT_EQ(column(GetParam().printed_price), expected_prices);
  EXPECT_EQ(column("CASE WHEN flag THEN 'yes' WHEN NOT flag THEN 'no' ELSE 'none' END"),
            expected_flags);
}

// Killed twice, and every message still has the balance that its own statement left.
TEST_P(RunTypes, what_a_step_reads_is_what_the_message_left_and_is_emitted_in_order) {
  const std::string text = changed(plan(), "[values]", "[run_]");
  const std::string reading = text.substr(0, text.find("[run_]")) + GetParam().read_balance +
                              "[[emit]]\nto = \"file:${RUN_DIR}/done\"\n"
                              "timestamp = \"at\"\nbody = { balance = \"balance\" }\n";
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += line("m" + std::to_string(i));
  send(lines + lines);
  for (const char* point : {"lane_after_handler", "lane_before_commit"}) {
    ::setenv("ONCE_POINT", point, 1);
    EXPECT_EQ(run(reading).exit_code, 128 + 9) << point;
    ::unsetenv("ONCE_POINT");
  }
  const Answer answer = run(reading);
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  const Lines announced =
      run_once({"consume", "file:" + scratch_.path("done"), "-o", "json"}).lines();
  ASSERT_EQ(announced.size(), 60u);
  for (std::size_t i = 0; i < announced.size(); ++i) {
    const Json message = Json::parse(announced[i]);
    EXPECT_EQ(message["id"], "m" + std::to_string(i));
    EXPECT_EQ(message["body"], "{\"balance\":" + std::to_string(i + 1) + "}");
    EXPECT_GT(message["timestamp_ms"], 1'700'000'000'000);
  }
}

}  // namespace once::testing
