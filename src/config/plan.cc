// SPDX-License-Identifier: Apache-2.0
#include "config/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <span>
#include <system_error>
#include <vector>

#include "base/local_path.h"
#include "base/secrets.h"
#include "base/url.h"
#include "config/plan_parts.h"
#include "config/toml_depth.h"
#include "config/toml_reader.h"
#include "config/wanted.h"
#include "model/ledger.h"

namespace once {
namespace {

constexpr std::array<std::string_view, 10> root_keys{"scope", "source", "store", "run",  "retry",
                                                     "park",  "values", "do",    "emit", "relay"};
// What pipelines of one file can have in common.
constexpr std::array<std::string_view, 3> shared_keys{"store", "run", "retry"};

template <std::size_t count>
constexpr auto with(std::string_view first, const std::array<std::string_view, count>& keys) {
  std::array<std::string_view, count + 1> all{first};
  std::copy(keys.begin(), keys.end(), all.begin() + 1);
  return all;
}
constexpr auto pipeline_keys = with("name", root_keys);
constexpr auto list_keys = with("pipeline", shared_keys);

constexpr std::array<std::string_view, 7> source_keys{"url",   "id",   "born", "content",
                                                      "ahead", "when", "skip"};
constexpr std::array<std::string_view, 1> store_keys{"url"};
constexpr std::array<std::string_view, 8> run_keys{
    "semantics", "order", "lanes", "batch", "retention", "at_end", "parked_max", "waiting_max"};
constexpr std::array<std::string_view, 2> retry_keys{"attempts", "backoff"};
constexpr std::array<std::string_view, 1> park_keys{"to"};
constexpr std::array<std::string_view, 1> relay_keys{"name"};

// The texts of the enumerators, in their order.
constexpr std::array<std::string_view, 3> semantics_words{"at most once", "at least once",
                                                          "effectively once"};
constexpr std::array<std::string_view, 2> order_words{"partition", "key"};
constexpr std::array<std::string_view, 3> born_words{"timestamp", "uuid7", "snowflake"};
constexpr std::array<std::string_view, 2> at_end_words{"wait", "stop"};
constexpr std::array<std::string_view, 1> skip_words{"empty"};

Status parse_source(const TomlTable& root, Plan& plan) {
  const auto source = ONCE_TRY(root.table("source", source_keys));
  if (!source) return root.refuse("source", "is missing: where the messages come from");
  plan.source_url = ONCE_TRY(source->required_text("url", "for example \"file:data/orders\""));
  const std::string id = ONCE_TRY(source->required_text(
      "id",
      "how the id of a message is found, for example \"json:/order/id\", \"key\" or "
      "\"carried\"; \"none\" leaves it to the position, which tells redeliveries only"));
  if (id != "none") {
    auto rule = IdRule::parse(id);
    if (!rule) return source->refuse("id", rule.error().text);
    plan.options.id = std::move(*rule);
  }
  if (const auto born = ONCE_TRY(source->word("born", born_words)))
    plan.options.born = static_cast<BornRule>(*born);
  if (const auto content = ONCE_TRY(source->text("content"))) {
    auto rule = ContentRule::parse(*content);
    if (!rule) return source->refuse("content", rule.error().text);
    plan.options.content = std::move(*rule);
  }
  if (const auto ahead = ONCE_TRY(source->duration_ms("ahead"))) plan.options.ahead_ms_max = *ahead;
  return {};
}

// Which messages are wanted, asked before the id rule. Needs the values.
Status parse_wanted(const TomlTable& root, Plan& plan) {
  const auto source = ONCE_TRY(root.table("source", source_keys));
  const bool skips_empty = ONCE_TRY(source->word("skip", skip_words)).has_value();
  plan.source_when = ONCE_TRY(parse_when(*source, plan.values));
  if (skips_empty || plan.source_when)
    plan.options.wanted = ONCE_TRY(make_wanted(plan, skips_empty));
  return {};
}

Status parse_store(const TomlTable& root, Plan& plan) {
  const auto store = ONCE_TRY(root.table("store", store_keys));
  if (!store) return root.refuse("store", "is missing: where effects and ids are kept");
  plan.store_url = ONCE_TRY(store->required_text("url", "for example \"sqlite:shop.db\""));
  if (const auto url = parse_url(plan.store_url, "sqlite"); !url)
    return store->refuse("url", fmt::format("cannot be used: {}", url.error().text));
  return {};
}

// "50% of 1000": of the last so many messages.
std::optional<ParkedLimit> parked_limit_of(std::string_view text) {
  const auto number = [&text](std::string_view behind) -> std::optional<std::uint32_t> {
    std::uint32_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with(behind)) return std::nullopt;
    text.remove_prefix(behind.size());
    return value;
  };
  const auto percent = number("% of ");
  const auto window = percent ? number("") : std::nullopt;
  constexpr std::uint32_t window_max = 1'000'000;
  if (!window || !text.empty() || *percent == 0 || *percent > 100 || *window == 0 ||
      *window > window_max)
    return std::nullopt;
  ParkedLimit limit{.percent = *percent, .window = *window};
  limit.messages_min = std::min(limit.messages_min, limit.window);
  return limit;
}

Status parse_parked_max(const TomlTable& run, PipelineOptions& options) {
  const auto text = ONCE_TRY(run.text("parked_max"));
  if (!text) return {};
  options.parked_max = parked_limit_of(*text);
  if (options.parked_max || *text == "none") return {};
  return run.refuse("parked_max",
                    fmt::format("says when too many messages are parked to go on: \"50% of 1000\" "
                                "of the last messages, or \"none\"; not \"{}\"",
                                *text));
}

Status parse_run(const TomlTable& root, Plan& plan) {
  const auto run = ONCE_TRY(root.table("run", run_keys));
  if (!run) return {};
  PipelineOptions& options = plan.options;
  if (const auto semantics = ONCE_TRY(run->word("semantics", semantics_words)))
    options.semantics = static_cast<Semantics>(*semantics);
  if (const auto order = ONCE_TRY(run->word("order", order_words)))
    options.order = static_cast<Order>(*order);
  if (const auto lanes = ONCE_TRY(run->integer("lanes", 1, 256)))
    options.lanes = static_cast<std::size_t>(*lanes);
  if (const auto batch = ONCE_TRY(run->integer("batch", 1, 1'000'000)))
    options.batch_count_max = static_cast<std::size_t>(*batch);
  if (const auto at_end = ONCE_TRY(run->word("at_end", at_end_words)))
    options.stop_at_end = *at_end == 1;
  ONCE_TRY(parse_parked_max(*run, options));
  if (const auto waiting = ONCE_TRY(run->integer("waiting_max", 1, 1'000'000)))
    options.waiting_max = static_cast<std::size_t>(*waiting);
  const auto retention = ONCE_TRY(run->text("retention"));
  if (retention == "forever")
    options.retention_ms = -1;
  else if (const auto duration = ONCE_TRY(run->duration_ms("retention")))
    options.retention_ms = *duration;
  return {};
}

Status parse_retry(const TomlTable& root, RetryPolicy& policy) {
  const auto retry = ONCE_TRY(root.table("retry", retry_keys));
  if (!retry) return {};
  if (const auto attempts = ONCE_TRY(retry->integer("attempts", 1, 1'000'000)))
    policy.attempts_max = static_cast<std::uint32_t>(*attempts);
  const auto backoff = ONCE_TRY(retry->text("backoff"));
  if (!backoff) return {};
  const std::size_t dots = backoff->find("..");
  const auto min = parse_duration_ms(backoff->substr(0, dots));
  const auto max = dots == std::string::npos ? min : parse_duration_ms(backoff->substr(dots + 2));
  if (!min || !max || *min > *max)
    return retry->refuse("backoff", fmt::format("is the shortest and the longest wait, "
                                                "\"10ms..10s\", not \"{}\"",
                                                *backoff));
  policy.backoff_ms_min = *min;
  policy.backoff_ms_max = *max;
  return {};
}

Status parse_park(const TomlTable& root, Plan& plan) {
  const auto park = ONCE_TRY(root.table("park", park_keys));
  if (!park) return {};
  const toml::node* to = park->native().get("to");
  if (to == nullptr) return park->refuse("to", "is missing: where the copies go, a URL");
  plan.park = ONCE_TRY(parse_target(root.file(), *to, "park.to", plan.options.scope));
  plan.options.park_to = plan.park->destination;
  return {};
}

Status parse_relay(const TomlTable& root, Plan& plan) {
  plan.relay_name = plan.options.scope;
  const auto relay = ONCE_TRY(root.table("relay", relay_keys));
  if (!relay) return {};
  plan.relay_name = ONCE_TRY(relay->required_text("name", "who the relay is at its destinations"));
  return {};
}

bool is_later(const Outcome& outcome) { return outcome.kind == Outcome::Kind::later; }
bool puts_off(const SqlStep& step) { return is_later(step.otherwise); }
bool puts_off(const UniqueStep& step) { return is_later(step.present); }
bool puts_off(const VersionStep& step) {
  return is_later(step.contended) || is_later(step.missing);
}
bool puts_off(const StateStep&) { return false; }
bool puts_off(const RedisStep& step) { return is_later(step.otherwise); }

bool step_puts_off(const Step& step) {
  return std::visit([](const auto& action) { return puts_off(action); }, step.action);
}

// What waits in the store is known by the record of its id.
Status check_later(const TomlTable& root, const Plan& plan) {
  if (plan.options.id && plan.options.semantics == Semantics::effectively_once) return {};
  const auto step = std::find_if(plan.steps.begin(), plan.steps.end(), step_puts_off);
  if (step == plan.steps.end()) return {};
  return root.file().refuse(step->place,
                            "later needs an id in [source] and semantics = \"effectively once\": "
                            "the message waits in the store under its id; retry needs neither");
}

// The keys of one pipeline. What it has not of `shared_keys`, it takes from `shared`.
Result<Plan> parse_pipeline(const TomlTable& root, const TomlTable& shared) {
  const auto owner_of = [&](std::string_view key) -> const TomlTable& {
    return root.has(key) ? root : shared;
  };
  Plan plan;
  plan.file = root.file().name;
  plan.options.scope = ONCE_TRY(root.required_text(
      "scope", "a name for who remembers, one per consumer purpose, for example \"points\""));
  if (const Status writable = check_scope(plan.options.scope); !writable)
    return root.refuse("scope", fmt::format("cannot be used: {}", writable.error().text));
  ONCE_TRY(parse_source(root, plan));
  ONCE_TRY(parse_store(owner_of("store"), plan));
  ONCE_TRY(parse_run(owner_of("run"), plan));
  ONCE_TRY(parse_retry(owner_of("retry"), plan.options.retry));
  ONCE_TRY(parse_park(root, plan));
  ONCE_TRY(parse_relay(root, plan));
  plan.values = ONCE_TRY(parse_values(root));
  ONCE_TRY(parse_wanted(root, plan));
  plan.steps = ONCE_TRY(parse_steps(root, plan.values));
  ONCE_TRY(check_later(root, plan));
  ONCE_TRY(parse_emits(root, plan));
  if (plan.steps.empty() && plan.emits.empty())
    return root.refuse("do", "is missing: write what a message does as [[do]] or [[emit]]");
  return plan;
}

// A scope has one ledger, one position per partition and one relay: two pipelines of a process
// would take them away from each other.
Status check_distinct(const TomlTable& table, const Plan& plan, std::span<const Plan> others) {
  for (const Plan& other : others) {
    if (plan.options.scope == other.options.scope)
      return table.refuse("scope",
                          fmt::format("is \"{}\", which is the scope of the pipeline \"{}\" above; "
                                      "each pipeline needs a scope of its own",
                                      plan.options.scope, other.name));
    if (plan.name == other.name)
      return table.refuse(table.has("name") ? "name" : "scope",
                          fmt::format("is \"{}\", which another pipeline above is called; names "
                                      "must differ",
                                      plan.name));
  }
  return {};
}

Result<std::vector<Plan>> parse_list(TomlFile& reading, const toml::table& parsed) {
  for (const std::string_view key : pipeline_keys)
    if (const toml::node* node = parsed.get(key);
        node != nullptr &&
        std::find(shared_keys.begin(), shared_keys.end(), key) == shared_keys.end())
      return reading.refuse(place_of(*node),
                            fmt::format("{} stands outside of [[pipeline]]: pipelines have only {} "
                                        "in common",
                                        key, fmt::join(shared_keys, ", ")));
  const TomlTable root = ONCE_TRY(TomlTable::open(reading, parsed, "", list_keys));
  const std::vector<TomlTable> tables = ONCE_TRY(root.tables("pipeline", pipeline_keys));
  if (tables.empty() || tables.size() > plans_max)
    return root.refuse("pipeline", fmt::format("is a list of 1 to {} pipelines, not of {}",
                                               plans_max, tables.size()));
  std::vector<Plan> plans;
  for (const TomlTable& table : tables) {
    Plan plan = ONCE_TRY(parse_pipeline(table, root));
    plan.name = ONCE_TRY(table.text("name")).value_or(plan.options.scope);
    if (plan.name.empty()) return table.refuse("name", "is empty");
    ONCE_TRY(check_distinct(table, plan, plans));
    plans.push_back(std::move(plan));
  }
  return plans;
}

Result<std::vector<Plan>> read_plans(std::string_view text, TomlFile& reading) {
  std::vector<Plan> plans;
  try {
    const toml::table parsed = toml::parse(text, reading.name);
    if (parsed.contains("pipeline")) {
      plans = ONCE_TRY(parse_list(reading, parsed));
    } else {
      const TomlTable root = ONCE_TRY(TomlTable::open(reading, parsed, "", root_keys));
      plans.push_back(ONCE_TRY(parse_pipeline(root, root)));
    }
  } catch (const toml::parse_error& error) {
    return reading.refuse({error.source().begin.line, error.source().begin.column},
                          fmt::format("this is no TOML: {}", error.description()));
  }
  for (Plan& plan : plans) plan.variables = reading.variables;
  return plans;
}

}  // namespace

std::string Plan::text_of(Place place) const {
  return place == Place{} ? file : fmt::format("{}:{}:{}", file, place.line, place.column);
}

Error Plan::error_at(Place place, std::string_view tag, std::string_view text) const {
  return {Remedy::stop, std::string(tag), fmt::format("{}: {}", text_of(place), text),
          std::nullopt};
}

namespace {

// Whether a password of these URLs is made of the value.
bool is_in_a_password(const std::string& value, std::span<const std::string> urls) {
  return !value.empty() && std::any_of(urls.begin(), urls.end(), [&](const std::string& text) {
    const auto url = parse_url(text);
    return url && url->password.find(value) != std::string::npos;
  });
}

// The file or directory of a URL as errors name it.
std::string file_in(const std::string& value) {
  const auto url = parse_url(value);
  const bool is_file = url && is_local_scheme(url->scheme) && !url->path.empty();
  return is_file ? absolute_path(url->path) : std::string();
}

}  // namespace

void Plan::teach(Secrets& secrets) const {
  std::vector<std::string> urls{source_url, store_url};
  for (const EmitTarget& destination : destinations()) urls.push_back(destination.to);
  // While the URLs are not known yet, nobody knows which values are parts of a password.
  const bool all = source_url.empty() && store_url.empty();
  for (const auto& [variable, value] : variables)
    if (all || is_secret_variable(variable) || without_credentials(value) != value ||
        is_in_a_password(value, urls)) {
      const std::string shown = fmt::format("${{{}}}", variable);
      secrets.learn_value(value, shown);
      if (const std::string path = file_in(value); !path.empty()) secrets.learn_value(path, shown);
    }
  secrets.learn(source_url);
  secrets.learn(store_url);
  for (const EmitTarget& destination : destinations()) secrets.learn(destination.to);
}

bool Plan::may_put_off() const { return std::any_of(steps.begin(), steps.end(), step_puts_off); }

std::vector<EmitTarget> Plan::destinations() const {
  std::vector<EmitTarget> all(emits.begin(), emits.end());
  if (park) all.push_back(*park);
  std::vector<EmitTarget> distinct;
  std::set<std::string_view> seen;
  for (const EmitTarget& one : all)
    if (seen.insert(one.destination).second) distinct.push_back(one);
  return distinct;
}

Result<std::vector<Plan>> parse_plans(std::string_view text, const std::string& file,
                                      const Environment& environment) {
  if (text.size() > plan_bytes_max)
    return fail(
        Remedy::stop, "config",
        fmt::format("{} has {} bytes, at most {} are read", file, text.size(), plan_bytes_max));
  TomlFile reading{file, environment};
  if (const auto deep = too_deep_key(text))
    return reading.refuse({deep->line, deep->column},
                          fmt::format("a key has at most {} parts", toml_key_parts_max));
  auto plans = read_plans(text, reading);
  if (plans) return plans;
  // What is wrong may be what a variable holds; that is not told.
  Secrets secrets;
  Plan unfinished;
  unfinished.variables = std::move(reading.variables);
  unfinished.teach(secrets);
  Error error = std::move(plans).error();
  error.text = secrets.redacted(error.text);
  return fail(std::move(error));
}

}  // namespace once
