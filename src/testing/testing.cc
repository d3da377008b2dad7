// SPDX-License-Identifier: Apache-2.0
// The schedules: which there are, and what is reported about them.
#include <fmt/format.h>
#include <once/testing.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "model/message_view.h"
#include "testing/judge.h"
#include "testing/world.h"

namespace once::testing {
namespace {

constexpr std::size_t findings_per_run_max = 3;
constexpr std::size_t steps_shown_max = 60;
constexpr std::size_t small_batch = 3;
constexpr Misfortune some_faults{.death_at = 0, .per_mille = 60, .faults_max = 8};

using Log = std::vector<std::size_t>;

// All the schedules of one plan.
class Kit {
 public:
  explicit Kit(const Plan& plan) : plan_(plan) {}

  // Runs the messages once without a fault; false: there is nothing to compare with.
  bool prepare();
  void run_twice();
  void reorder();
  void crash_at_every_step();
  void random_failures();
  Report report() { return std::move(report_); }

 private:
  Status verify_plan();
  bool enough() const { return report_.findings.size() >= plan_.findings_max; }
  void refuse(const Error& error);
  void keep(std::vector<Finding> findings, const Script& script, const Run& run);
  std::optional<Run> play(const Script& script);
  void try_script(const Script& script);

  Log plain_log() const {
    Log log(plan_.messages.size());
    std::iota(log.begin(), log.end(), std::size_t{0});
    return log;
  }
  Log sent_twice_log() const;
  Log shuffled_log(Dice& dice) const;
  Log relapsing_log(Dice& dice) const;

  const Plan& plan_;
  std::vector<std::string> ids_;
  std::optional<Judge> judge_;
  Report report_;
};

Status Kit::verify_plan() {
  if (!plan_.handler || !plan_.fresh_store || !plan_.effects || plan_.messages.empty())
    return fail(Remedy::stop, "config",
                "a plan needs a handler, messages, a fresh store and a way to read the effects");
  const SourceTraits source{
      .name = "kit:", .ordered = true, .replayable = true, .redelivery_ms_max = 0};
  const auto store = ONCE_TRY(plan_.fresh_store());
  ONCE_TRY(verify(source, store->traits(), plan_.handler(), plan_.options));
  ids_ = ONCE_TRY(ids_of(plan_));
  return {};
}

bool Kit::prepare() {
  if (const Status good = verify_plan(); !good) {
    refuse(good.error());
    return false;
  }
  const Script plain{.name = "every message once", .seed = plan_.seed, .log = plain_log()};
  judge_.emplace(plan_, ids_);
  const auto run = play(plain);
  if (!run) return false;
  keep(judge_->expect(*run), plain, *run);
  return report_.ok();
}

void Kit::refuse(const Error& error) {
  Finding found;
  found.kind = Finding::Kind::refused;
  found.text = error.text;
  report_.findings.push_back(std::move(found));
}

void Kit::keep(std::vector<Finding> findings, const Script& script, const Run& run) {
  if (findings.size() > findings_per_run_max) findings.resize(findings_per_run_max);
  for (Finding& found : findings) {
    if (enough()) return;
    found.schedule = script.name;
    found.seed = script.seed;
    found.steps = run.steps;
    report_.findings.push_back(std::move(found));
  }
}

std::optional<Run> Kit::play(const Script& script) {
  auto run = testing::play(plan_, ids_, script);
  ++report_.schedules;
  if (!run) {
    refuse(run.error());
    return std::nullopt;
  }
  report_.deaths += run->deaths;
  report_.faults += run->faults;
  return std::move(*run);
}

void Kit::try_script(const Script& script) {
  if (enough()) return;
  if (const auto run = play(script)) keep(judge_->compare(*run), script, *run);
}

// Each message twice, unless the plan says that this does not happen.
Log Kit::sent_twice_log() const {
  Log log = plain_log();
  if (plan_.resends)
    for (std::size_t i = 0; i < plan_.messages.size(); ++i) log.push_back(i);
  return log;
}

// Any order that the plan allows.
Log Kit::shuffled_log(Dice& dice) const {
  Log order = plan_.any_order ? sent_twice_log() : plain_log();
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[dice.below(i)]);
  if (plan_.any_order) return order;
  // Places change hands, but each key's messages take theirs in the old order.
  std::map<std::string_view, Log> of_key;
  for (const std::size_t i : plain_log()) of_key[view_of(plan_.messages[i].key)].push_back(i);
  std::map<std::string_view, std::size_t> next;
  for (std::size_t& place : order) {
    const std::string_view key = view_of(plan_.messages[place].key);
    place = of_key[key][next[key]++];
  }
  return order;
}

// In order, but now and then it begins again from an older message.
Log Kit::relapsing_log(Dice& dice) const {
  Log log;
  for (const std::size_t message : plain_log()) {
    log.push_back(message);
    if (!plan_.resends || dice.below(3) != 0) continue;
    for (std::size_t old = dice.below(message + 1); old <= message; ++old) log.push_back(old);
  }
  return log;
}

void Kit::run_twice() {
  const std::uint64_t seed = plan_.seed;
  const std::size_t all = 2 * plan_.messages.size();
  try_script({.name = "run_twice: every batch is delivered twice",
              .seed = seed,
              .log = plain_log(),
              .batch_count = small_batch,
              .redelivery = Redelivery::twice});
  try_script({.name = "run_twice: every batch comes with everything before it",
              .seed = seed,
              .log = plain_log(),
              .batch_count = small_batch,
              .redelivery = Redelivery::from_start});
  if (!plan_.resends) return;
  Log in_a_row;
  for (const std::size_t message : plain_log()) in_a_row.insert(in_a_row.end(), 2, message);
  try_script({.name = "run_twice: every message is sent twice in a row, one batch",
              .seed = seed,
              .log = in_a_row,
              .batch_count = all});
  try_script({.name = "run_twice: every message is sent twice in a row, in batches of one",
              .seed = seed,
              .log = in_a_row,
              .batch_count = 1});
  try_script({.name = "run_twice: all messages are sent, then all again, one batch",
              .seed = seed,
              .log = sent_twice_log(),
              .batch_count = all});
  try_script({.name = "run_twice: all messages are sent, then all again, in small batches",
              .seed = seed,
              .log = sent_twice_log(),
              .batch_count = small_batch});
}

void Kit::reorder() {
  const bool free = plan_.any_order || plan_.options.order == Order::key;
  for (std::size_t i = 0; i < plan_.reorders; ++i) {
    const std::uint64_t seed = plan_.seed + i;
    Dice dice(seed);
    try_script({.name = free ? "reorder: another order that the plan allows"
                             : "reorder: old messages come again",
                .seed = seed,
                .log = free ? shuffled_log(dice) : relapsing_log(dice),
                .batch_count = 1 + dice.below(2 * small_batch),
                .redelivery = dice.below(2) == 0 ? Redelivery::none : Redelivery::from_start});
  }
}

void Kit::crash_at_every_step() {
  Script script{.name = "crash_at_every_step: without a crash",
                .seed = plan_.seed,
                .log = sent_twice_log(),
                .batch_count = small_batch};
  const auto quiet = play(script);
  if (!quiet) return;
  keep(judge_->compare(*quiet), script, *quiet);
  const std::size_t crashes = std::min(quiet->calls, plan_.crashes_max);
  for (std::size_t i = 0; i < crashes && !enough(); ++i) {
    script.misfortune.death_at = 1 + i * quiet->calls / crashes;
    script.name = fmt::format("crash_at_every_step: at call {}", script.misfortune.death_at);
    try_script(script);
  }
}

void Kit::random_failures() {
  for (std::size_t i = 0; i < plan_.failures; ++i) {
    const std::uint64_t seed = plan_.seed + i;
    Dice dice(seed);
    Script script;
    script.name = "random_failures";
    script.seed = seed;
    script.log = dice.below(2) == 0 ? relapsing_log(dice) : sent_twice_log();
    script.batch_count = 1 + dice.below(2 * small_batch);
    script.redelivery = static_cast<Redelivery>(dice.below(3));
    script.misfortune = some_faults;
    try_script(script);
  }
}

template <class Work>
Report reported(const Plan& plan, const Work& work) {
  Kit kit(plan);
  if (kit.prepare()) work(kit);
  return kit.report();
}

std::string text_of(const Field& field) {
  if (const auto* text = std::get_if<std::string>(&field)) return *text;
  if (const auto* number = std::get_if<std::int64_t>(&field)) return fmt::format("{}", *number);
  if (const auto* real = std::get_if<double>(&field)) return fmt::format("{}", *real);
  return "null";
}

Result<std::vector<Effect>> read_rows(Store& store, const std::string& statement) {
  auto transaction = ONCE_TRY(store.begin("once.testing"));
  if (transaction->sql() == nullptr)
    return fail(Remedy::stop, "config", "rows_of needs an SQL store");
  std::vector<Effect> effects;
  for (const Row& row : ONCE_TRY(transaction->sql()->query(statement))) {
    Effect effect{.id = text_of(row.front())};
    for (std::size_t i = 1; i < row.size(); ++i)
      effect.what += (i == 1 ? "" : ", ") + text_of(row[i]);
    effects.push_back(std::move(effect));
  }
  return effects;
}

std::string text_of(const Finding& found) {
  std::string text = fmt::format("{}: ", name_of(found.kind));
  if (!found.id.empty()) text += fmt::format("\"{}\" ", found.id);
  text += found.text + "\n";
  if (found.schedule.empty()) return text;
  text += fmt::format("  {} (seed {})\n", found.schedule, found.seed);
  for (std::size_t i = 0; i < std::min(found.steps.size(), steps_shown_max); ++i)
    text += fmt::format("  {:3}. {}\n", i + 1, found.steps[i]);
  if (found.steps.size() > steps_shown_max)
    text += fmt::format("       and {} more\n", found.steps.size() - steps_shown_max);
  return text;
}

}  // namespace

ReadEffects rows_of(std::string statement) {
  return [statement = std::move(statement)](Store& store) { return read_rows(store, statement); };
}

std::string Report::text() const {
  std::string text = fmt::format("{} schedules, {} deaths, {} other faults; findings: {}\n",
                                 schedules, deaths, faults, findings.size());
  for (const Finding& found : findings) text += text_of(found);
  return text;
}

Report run_twice(const Plan& plan) {
  return reported(plan, [](Kit& kit) { kit.run_twice(); });
}

Report reorder(const Plan& plan) {
  return reported(plan, [](Kit& kit) { kit.reorder(); });
}

Report crash_at_every_step(const Plan& plan) {
  return reported(plan, [](Kit& kit) { kit.crash_at_every_step(); });
}

Report random_failures(const Plan& plan) {
  return reported(plan, [](Kit& kit) { kit.random_failures(); });
}

Report check(const Plan& plan) {
  return reported(plan, [](Kit& kit) {
    kit.run_twice();
    kit.reorder();
    kit.crash_at_every_step();
    kit.random_failures();
  });
}

}  // namespace once::testing
