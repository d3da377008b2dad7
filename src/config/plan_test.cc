// SPDX-License-Identifier: Apache-2.0
#include "config/plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "config/plan_testing.h"
#include "config/toml_depth.h"

namespace once {
namespace {

using testing::complaint_about;
using testing::parsed;

constexpr std::string_view whole = R"toml(
scope = "points"
[source]
url = "file:data/orders"
id = "json:/id"
[store]
url = "sqlite:${DB:-p.db}"
[values]
points = { json = "/points", type = "integer" }
[[do]]
sql = "INSERT INTO flow (id, points) VALUES (:id, :points)"
)toml";

// The error of a file in which one text was replaced.
std::string complaint(std::string_view what, std::string_view with) {
  std::string text(whole);
  text.replace(text.find(what), what.size(), with);
  return complaint_about(text);
}

TEST(Plan, what_is_not_said_has_the_defaults_of_a_pipeline) {
  const Plan plan = parsed(whole).value();
  const PipelineOptions defaults;
  EXPECT_EQ(plan.options.scope, "points");
  EXPECT_EQ(plan.options.id, IdRule::parse("json:/id").value());
  EXPECT_EQ(plan.options.semantics, defaults.semantics);
  EXPECT_EQ(plan.options.lanes, defaults.lanes);
  EXPECT_EQ(plan.options.batch_count_max, defaults.batch_count_max);
  EXPECT_EQ(plan.options.waiting_max, defaults.waiting_max);
  EXPECT_EQ(plan.options.retention_ms, defaults.retention_ms);
  EXPECT_EQ(plan.options.retry.attempts_max, defaults.retry.attempts_max);
  EXPECT_FALSE(plan.options.stop_at_end);
  EXPECT_EQ(plan.store_url, "sqlite:p.db");
  EXPECT_EQ(plan.relay_name, "points");
  EXPECT_EQ(plan.steps.size(), 1u);
}

TEST(Plan, parked_messages_go_to_a_topic_and_waiting_ones_are_tried_again) {
  const std::string text = std::string(whole) + R"(
rows = 1
otherwise = { later = "5m", attempts = 7, reason = "not yet" }
[park]
to = "file:data/dead"
)";
  const Plan plan = parsed(text).value();
  EXPECT_EQ(plan.options.park_to, "run/points/file:data/dead");
  ASSERT_EQ(plan.destinations().size(), 1u);
  EXPECT_EQ(plan.destinations()[0].to, "file:data/dead");
  EXPECT_EQ(std::get<SqlStep>(plan.steps[0].action).otherwise, later("not yet", 300'000, 7));
}

TEST(Plan, what_cannot_be_parked_or_put_off_is_refused) {
  const std::string_view last = "VALUES (:id, :points)\"";
  const auto with = [&](const std::string& more) {
    return complaint(last, std::string(last) + "\n" + more);
  };
  EXPECT_NE(with("[park]").find("park.to"), std::string::npos);
  EXPECT_NE(with("rows = 1\notherwise = \"later\"").find("later"), std::string::npos);
  EXPECT_NE(with("rows = 1\notherwise = { later = \"soon\" }").find("later"), std::string::npos);
  EXPECT_NE(with("rows = 1\notherwise = { later = \"5m\", park = \"x\" }").find("two things"),
            std::string::npos);
  EXPECT_NE(with("rows = 1\notherwise = { park = \"x\", attempts = 3 }").find("only with later"),
            std::string::npos);
  EXPECT_NE(with("rows = 1\notherwise = { later = \"5m\" }\n[run]\nsemantics = \"at least once\"")
                .find("later needs"),
            std::string::npos);
}

TEST(Plan, a_scope_that_no_command_could_name_is_refused_where_it_stands) {
  const auto read = parse_plans("scope = \"a\\nb\"\n[source]\nurl = \"file:a\"\nid = \"key\"\n",
                                "p.toml", [](const std::string&) { return std::nullopt; });
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().text.find("p.toml:1:"), std::string::npos) << read.error().text;
  EXPECT_NE(read.error().text.find("has a control character"), std::string::npos);
}

TEST(Plan, every_option_is_taken) {
  const std::string text = std::string(whole) + R"(
[run]
semantics = "at least once"
order = "key"
lanes = 4
batch = 50
waiting_max = 30
retention = "forever"
at_end = "stop"
[retry]
attempts = 9
backoff = "1s..2m"
[relay]
name = "me"
)";
  const Plan plan = parsed(text).value();
  EXPECT_EQ(plan.options.semantics, Semantics::at_least_once);
  EXPECT_EQ(plan.options.order, Order::key);
  EXPECT_EQ(plan.options.lanes, 4u);
  EXPECT_EQ(plan.options.batch_count_max, 50u);
  EXPECT_EQ(plan.options.waiting_max, 30u);
  EXPECT_EQ(plan.options.retention_ms, -1);
  EXPECT_TRUE(plan.options.stop_at_end);
  EXPECT_EQ(plan.options.retry.attempts_max, 9u);
  EXPECT_EQ(plan.options.retry.backoff_ms_min, 1000);
  EXPECT_EQ(plan.options.retry.backoff_ms_max, 120'000);
  EXPECT_EQ(plan.relay_name, "me");
}

// The plan of the file in which the source has one more line.
Result<Plan> with_source(const std::string& line) {
  std::string text(whole);
  text.insert(text.find("[store]"), line + "\n");
  return parsed(text);
}

TEST(Plan, the_source_says_what_is_compared_of_a_duplicate) {
  EXPECT_EQ(parsed(whole)->options.content, PipelineOptions().content);
  for (const char* rule : {"none", "json", "everything", "fields:/amount,/to"}) {
    const auto plan = with_source(fmt::format("content = \"{}\"", rule));
    ASSERT_TRUE(plan) << plan.error().text;
    EXPECT_EQ(plan->options.content, ContentRule::parse(rule).value()) << rule;
    EXPECT_EQ(plan->options.content.text(), rule);
  }
  for (const char* wrong : {"content = \"body\"", "content = \"\"", "content = \"fields:\"",
                            "content = \"fields:amount\"", "content = \"fields:/a,\"",
                            "content = true", "content = [\"/amount\"]"}) {
    const auto plan = with_source(wrong);
    ASSERT_FALSE(plan) << wrong;
    EXPECT_EQ(plan.error().tag, "config") << wrong;
    EXPECT_TRUE(plan.error().text.starts_with("p.toml:6:11: source.content ")) << plan.error().text;
  }
}

TEST(Plan, the_source_says_how_far_ahead_a_birth_may_be) {
  EXPECT_EQ(parsed(whole)->options.ahead_ms_max, PipelineOptions().ahead_ms_max);
  EXPECT_EQ(with_source("ahead = \"0s\"")->options.ahead_ms_max, 0);
  EXPECT_EQ(with_source("ahead = \"90s\"")->options.ahead_ms_max, 90'000);
  EXPECT_EQ(with_source("ahead = \"7d\"")->options.ahead_ms_max, 7 * 86'400'000);
  for (const char* wrong : {"ahead = \"1 day\"", "ahead = \"-1s\"", "ahead = \"\"",
                            "ahead = \"99999999999999999d\"", "ahead = 60"}) {
    const auto plan = with_source(wrong);
    ASSERT_FALSE(plan) << wrong;
    EXPECT_EQ(plan.error().tag, "config") << wrong;
    EXPECT_TRUE(plan.error().text.starts_with("p.toml:6:9: source.ahead ")) << plan.error().text;
  }
}

TEST(Plan, how_many_messages_may_be_parked_is_a_share_of_the_last_ones) {
  const auto limit = [](const std::string& text) {
    return parsed(std::string(whole) + "[run]\nparked_max = \"" + text + "\"\n")
        .value()
        .options.parked_max;
  };
  EXPECT_EQ(parsed(whole).value().options.parked_max, ParkedLimit{});
  EXPECT_EQ(limit("50% of 1000"), ParkedLimit{});
  EXPECT_EQ(limit("100% of 20"), (ParkedLimit{.percent = 100, .window = 20, .messages_min = 20}));
  EXPECT_EQ(limit("none"), std::nullopt);
  for (const char* wrong : {"", "50%", "0% of 10", "101% of 10", "50% of 0", "50% of 1000001",
                            "half of 10", "50% of 10 messages", "-1% of 10", "50% of"})
    EXPECT_NE(complaint("[values]", "[run]\nparked_max = \"" + std::string(wrong) + "\"\n[values]")
                  .find("\"50% of 1000\""),
              std::string::npos)
        << wrong;
}

TEST(Plan, an_unknown_key_is_refused_with_the_nearest_one_and_its_place) {
  EXPECT_EQ(complaint("scope =", "scop ="),
            "p.toml:2:1: there is no key \"scop\", did you mean \"scope\"?; known: scope, source, "
            "store, run, retry, park, values, do, emit, relay");
  EXPECT_NE(
      complaint("type =", "tpye =")
          .find("p.toml:9:30: there is no key \"tpye\" in values.points, did you mean \"type\"?"),
      std::string::npos);
  EXPECT_NE(complaint("sql =", "sqll =").find("did you mean \"sql\"?"), std::string::npos);
}

TEST(Plan, a_wrong_type_is_refused_with_its_place) {
  EXPECT_EQ(complaint("\"points\"", "7"), "p.toml:2:9: scope must be a string, not an integer");
  EXPECT_EQ(complaint("\"integer\"", "\"int\""),
            "p.toml:9:37: values.points.type cannot be \"int\"; known: text, integer, number, "
            "decimal, boolean, bytes, json, timestamp, milliseconds");
  EXPECT_NE(complaint("[[do]]", "[do]").find("write [[do]]"), std::string::npos);
  EXPECT_NE(complaint("[values]", "[run]\nwaiting_max = 0\n[values]").find("waiting_max"),
            std::string::npos);
  EXPECT_NE(complaint("[values]", "[run]\nlanes = 0\n[values]").find("between 1 and 256, not 0"),
            std::string::npos);
  EXPECT_NE(complaint("[values]", "[run]\nretention = \"7 days\"\n[values]").find("a duration"),
            std::string::npos);
}

TEST(Plan, what_is_missing_is_named) {
  EXPECT_NE(complaint("scope = \"points\"", "").find("scope is missing"), std::string::npos);
  EXPECT_NE(complaint("id = \"json:/id\"", "").find("source.id is missing"), std::string::npos);
  EXPECT_NE(complaint("[source]", "[[emit]]\nto = \"file:a/b\"\n[other]").find("no key \"other\""),
            std::string::npos);
}

TEST(Plan, what_is_no_toml_is_told_with_its_place) {
  const auto plan = parsed("scope = \n");
  ASSERT_FALSE(plan);
  EXPECT_TRUE(plan.error().text.starts_with("p.toml:1:")) << plan.error().text;
  EXPECT_EQ(plan.error().tag, "config");
}

TEST(Plan, names_have_to_meet) {
  EXPECT_NE(
      complaint(":points)", ":point)")
          .find("p.toml:11:7: there is no value \"point\" in [values], did you mean \"points\"?"),
      std::string::npos);
  EXPECT_EQ(complaint("(:id, :points)", "(:id, 1)"),
            "p.toml:9:10: the value \"points\" is used by nobody");
  EXPECT_NE(complaint("VALUES (:id", "VALUES (?").find("a parameter is written :name"),
            std::string::npos);
}

TEST(Plan, variables_come_from_the_environment_and_never_into_a_statement) {
  EXPECT_EQ(parsed(whole, {{"DB", "other.db"}})->store_url, "sqlite:other.db");
  std::string text(whole);
  text.replace(text.find("${DB:-p.db}"), 11, "${DB}$$x");
  EXPECT_EQ(parsed(text, {{"DB", "a"}})->store_url, "sqlite:a$x");
  const auto missing = parsed(text);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text.find("no variable DB"), std::string::npos);
  std::string sql(whole);
  sql.replace(sql.find(":points)"), 8, ":points) -- ${DB}");
  EXPECT_NE(std::get<SqlStep>(parsed(sql, {{"DB", "x"}})->steps[0].action).statement.find("${DB}"),
            std::string::npos);
}

TEST(Plan, secret_in_a_file_is_taken_and_not_shown) {
  std::string text(whole);
  text.replace(text.find("sqlite:${DB:-p.db}"), 18, "postgresql://u:${file:/run/db}@h/d");
  const Plan plan = parsed(text, {{"file:/run/db", "geheim77"}}).value();
  EXPECT_EQ(plan.store_url, "postgresql://u:geheim77@h/d");
  Secrets secrets;
  plan.teach(secrets);
  EXPECT_EQ(secrets.redacted("geheim77 is wrong"), "${file:/run/db} is wrong");
  const auto missing = parsed(text);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().text,
            "p.toml:7:7: /run/db cannot be read, or has more than 65536 bytes");
}

TEST(Plan, secrets_are_not_shown) {
  std::string text(whole);
  text.replace(text.find("sqlite:${DB:-p.db}"), 18, "${URL}");
  text.replace(text.find("file:data/orders"), 16, "kafka://me:pw@host/orders");
  const Plan plan = parsed(text, {{"URL", "postgresql://u:geheim@db/x"}}).value();
  Secrets secrets;
  plan.teach(secrets);
  EXPECT_EQ(
      secrets.redacted("cannot open postgresql://u:geheim@db/x, nor kafka://me:pw@host/orders"),
      "cannot open ${URL}, nor kafka://me:***@host/orders");
  EXPECT_EQ(secrets.redacted("user u:geheim@db"), "user u:***@db");
}

// The store keeps the destination of each message as it is written.
TEST(Plan, password_that_is_written_into_a_destination_is_refused_and_not_shown) {
  const auto with = [](const std::string& to, const std::string& park) {
    return parsed(fmt::format("{}[[emit]]\nto = \"{}\"\n[park]\nto = \"{}\"\n", whole, to, park),
                  {{"USER", "me"},
                   {"SECRET", "geheim77"},
                   {"HOST", "h:9092"},
                   {"file:/run/kafka", "geheim77"}});
  };
  for (const std::string url :
       {"kafka://me:geheim77@h/t", "kafka://me:ge${SECRET}77@h/t",
        "kafka://h/t?sasl.password=geheim77", "kafka://me:${MISSING:-geheim77}@h/t",
        "kafka://me:geheim77@${HOST}/t"})
    for (const bool in_park : {false, true}) {
      const auto refused = with(in_park ? "file:data/a" : url, in_park ? url : "file:data/b");
      ASSERT_FALSE(refused) << url;
      EXPECT_NE(refused.error().text.find("properties=FILE"), std::string::npos)
          << refused.error().text;
      EXPECT_EQ(refused.error().text.find("geheim"), std::string::npos) << refused.error().text;
    }
  for (const std::string url :
       {"kafka://${USER}:${SECRET}@${HOST}/t", "kafka://me:${file:/run/kafka}@h/t",
        "kafka://me@h/t", "kafka://h/t?sasl.password=${SECRET}",
        "kafka://h/t?properties=/run/kafka"}) {
    const auto plan = with(url, "file:data/dead");
    ASSERT_TRUE(plan) << url << plan.error().text;
    for (const EmitTarget& target : plan->destinations())
      EXPECT_EQ(target.destination.find("geheim"), std::string::npos) << target.destination;
  }
}

TEST(Plan, value_of_a_variable_that_is_wrong_is_not_shown) {
  std::string text(whole);
  text += "\n[run]\norder = \"${ORDER}\"\n";
  const auto wrong = parsed(text, {{"ORDER", "hunter22"}});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text.find("cannot be \"${ORDER}\""), std::string::npos)
      << wrong.error().text;
}

// Each part is a table inside of another, and the parser takes them apart by recursion.
TEST(Plan, key_with_forty_thousand_parts_is_refused_before_it_overflows_the_stack) {
  std::string key = "a";
  for (int i = 0; i < 40'000; ++i) key += ".a";
  for (const std::string& text :
       {key + " = 1", "[" + key + "]", "x = {" + key + " = 1}", "\n\nx = [\n{" + key + " = 1}]",
        "'a.b'.\"c\\\"\"." + key + "=1"}) {
    const auto deep = parsed(text);
    ASSERT_FALSE(deep);
    EXPECT_NE(deep.error().text.find("at most 16 parts"), std::string::npos) << deep.error().text;
  }
  std::string nested = "x = ";
  for (int i = 0; i < 40'000; ++i) nested += "[";
  EXPECT_FALSE(parsed(nested));
}

TEST(Plan, dots_outside_of_keys_count_for_nothing) {
  const std::string dots(100, '.');
  const std::vector<std::string> lines{
      "# " + dots,
      "x = \"" + dots + "\"",
      "x = \"\\\"" + dots + "\"",
      "x = '" + dots + "'",
      "x = \"\"\"\n\"" + dots + "\"\"\"\"",
      "x = '''\n'" + dots + "\n'''''",
      "x = [0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1,0.1]",
  };
  for (const std::string& line : lines) EXPECT_FALSE(too_deep_key(line)) << line;
  EXPECT_FALSE(too_deep_key("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p = 1"));
  const auto deep = too_deep_key("x = 1\na.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q = 1");
  ASSERT_TRUE(deep);
  EXPECT_EQ(deep->line, 2u);
  EXPECT_EQ(deep->column, 32u);
}

TEST(Plan, the_depth_of_keys_is_found_in_one_pass_however_many_strings_there_are) {
  const std::string quotes(std::size_t{1} << 22, '"');  // in quadratic time: minutes
  EXPECT_FALSE(too_deep_key(quotes));
  EXPECT_FALSE(too_deep_key(std::string(quotes.size(), '\'')));
}

TEST(Plan, a_message_to_emit_needs_an_id_of_its_own) {
  const std::string two = "[[emit]]\nto = \"file:a/b\"\n[[emit]]\nto = \"file:a/b\"\n[[do]]";
  EXPECT_NE(complaint("[[do]]", two).find("a duplicate of the other"), std::string::npos);
  std::string text(whole);
  text.replace(text.find("json:/id"), 8, "none");
  text += "[[emit]]\nto = \"file:a/b\"\n";
  const auto plan = parsed(text);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().text.find("emit.id is missing"), std::string::npos) << plan.error().text;
}

TEST(Plan, a_step_does_one_thing) {
  EXPECT_NE(complaint("sql =", "unique = { table = \"a\", key = { a = \"id\" } }\nsql =")
                .find("does one thing"),
            std::string::npos);
  EXPECT_NE(complaint("[[do]]", "[[do]]\notherwise = \"park\"").find("needs rows"),
            std::string::npos);
  EXPECT_NE(complaint("[[do]]", "[[do]]\nrows = 1\notherwise = \"parc\"").find("mean \"park\"?"),
            std::string::npos);
}

constexpr std::string_view two = R"toml(
store = { url = "sqlite:shop.db" }
run = { batch = 7, at_end = "stop" }
[[pipeline]]
scope = "points"
source = { url = "file:data/orders", id = "json:/id" }
[[pipeline.do]]
sql = "INSERT INTO flow (id) VALUES (:id)"
[[pipeline]]
name = "mail"
scope = "mail.v2"
source = { url = "file:data/orders", id = "key" }
store = { url = "sqlite:mail.db" }
run = { lanes = 2 }
[[pipeline.emit]]
to = "file:data/mail"
)toml";

Result<std::vector<Plan>> several(std::string_view text) {
  return parse_plans(text, "p.toml", testing::environment());
}

std::string several_complaint(std::string_view what, std::string_view with) {
  std::string text(two);
  text.replace(text.find(what), what.size(), with);
  const auto plans = several(text);
  return plans ? "" : plans.error().text;
}

TEST(Plans, a_file_without_a_list_is_one_pipeline_without_a_name) {
  const auto plans = several(whole).value();
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].name, "");
}

TEST(Plans, a_pipeline_has_its_own_keys_and_takes_the_others_from_the_file) {
  const auto plans = several(two).value();
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].name, "points") << "the scope, where nothing else is said";
  EXPECT_EQ(plans[0].store_url, "sqlite:shop.db");
  EXPECT_EQ(plans[0].options.batch_count_max, 7u);
  EXPECT_TRUE(plans[0].options.stop_at_end);
  EXPECT_EQ(plans[1].name, "mail");
  EXPECT_EQ(plans[1].options.scope, "mail.v2");
  EXPECT_EQ(plans[1].store_url, "sqlite:mail.db");
  EXPECT_EQ(plans[1].options.lanes, 2u);
  EXPECT_EQ(plans[1].options.batch_count_max, PipelineOptions().batch_count_max)
      << "a table is taken whole";
  EXPECT_EQ(plans[1].emits.at(0).destination, "run/mail.v2/file:data/mail");
}

TEST(Plans, scopes_and_names_differ) {
  EXPECT_EQ(several_complaint("\"mail.v2\"", "\"points\""),
            "p.toml:11:9: pipeline.scope is \"points\", which is the scope of the pipeline "
            "\"points\" above; each pipeline needs a scope of its own");
  EXPECT_EQ(several_complaint("\"mail\"", "\"points\""),
            "p.toml:10:8: pipeline.name is \"points\", which another pipeline above is called; "
            "names must differ");
}

TEST(Plans, what_belongs_to_one_pipeline_does_not_stand_outside_of_the_list) {
  EXPECT_EQ(several_complaint("\nstore", "\nscope = \"points\"\nstore"),
            "p.toml:2:9: scope stands outside of [[pipeline]]: pipelines have only store, run, "
            "retry in common");
  EXPECT_NE(several_complaint("\nrun", "\nrum").find("did you mean \"run\"?"), std::string::npos);
  EXPECT_NE(several("pipeline = []").error().text.find("1 to 64 pipelines, not of 0"),
            std::string::npos);
  EXPECT_NE(several("pipeline = 3").error().text.find("write [[pipeline]]"), std::string::npos);
  EXPECT_NE(several_complaint("[[pipeline.emit]]\nto = \"file:data/mail\"", "")
                .find("pipeline.do is missing"),
            std::string::npos);
}

}  // namespace
}  // namespace once
