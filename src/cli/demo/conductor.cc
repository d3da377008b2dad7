// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/conductor.h"

#include <fmt/format.h>
#include <once/clock.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/exit_code.h"

namespace once::cli {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::int64_t look_ns = 10 * ns_per_ms;
constexpr std::int64_t freeze_ns = 120 * ns_per_ms;
constexpr std::int64_t zombie_ns = 60 * ns_per_ms;
constexpr std::int64_t stuck_ns_max = 30'000 * ns_per_ms;
constexpr std::uint32_t failures_max = 20;

}  // namespace

Result<SceneReport> Conductor::run(const Scene& scene) {
  kills_ = plan_kills(settings_);
  changes_ = plan_owner_changes(settings_);
  std::reverse(kills_.begin(), kills_.end());
  std::reverse(changes_.begin(), changes_.end());
  formers_.clear();
  report_ = {};
  sight_ = {};
  reached_ = 0;
  due_since_ns_.reset();
  gate_ended_ = scene.gate.empty();
  news_.clear();
  failures_ = 0;

  Crew crew(settings_, child_number_);
  Progress progress(output_);
  const std::int64_t start_ns = system_clock().ticks_ns();
  moved_ns_ = start_ns;
  std::int64_t look_after_ns = 0;
  while (!sight_.done || !kills_.empty() || !formers_.empty()) {
    if (interrupted_())
      return fail(Remedy::stop, "interrupted", "interrupted; all child processes were ended");
    ONCE_TRY(bury(scene, crew.reap(), crew));
    ONCE_TRY(restart(scene, crew));
    const std::int64_t now_ns = system_clock().ticks_ns();
    if (now_ns >= look_after_ns) {
      ONCE_TRY(watch(scene));
      look_after_ns = now_ns + look_ns;
    }
    ONCE_TRY(strike(scene, crew));
    wake_formers(scene, crew);
    show(scene, progress);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ONCE_TRY(bury(scene, crew.dismiss(), crew));
  report_.seconds = static_cast<double>(system_clock().ticks_ns() - start_ns) / 1e9;
  return report_;
}

Status Conductor::watch(const Scene& scene) {
  const Sight sight = ONCE_TRY(scene.look(gate_ended_));
  const std::int64_t now_ns = system_clock().ticks_ns();
  if (sight.handled != sight_.handled) moved_ns_ = now_ns;
  sight_ = sight;
  reached_ = static_cast<double>(sight.handled) /
             static_cast<double>(std::max<std::int64_t>(1, scene.total));
  if (sight.done || now_ns - moved_ns_ < stuck_ns_max) return {};
  return fail(Remedy::stop, "stuck",
              fmt::format("{}: {} of {} orders were handled, and then nothing moved for {} s; the "
                          "last that a child said: {}",
                          scene.title, sight.handled, scene.total, stuck_ns_max / ns_per_ms / 1000,
                          last_failure_));
}

// Whoever has no living child gets a new one; the gate only until it has sent everything.
Status Conductor::restart(const Scene& scene, Crew& crew) {
  for (const std::string& role : scene.roles) {
    if (role == scene.gate && gate_ended_) continue;
    if (crew.find(role) == nullptr) ONCE_TRY(crew.start(role));
  }
  return {};
}

Status Conductor::bury(const Scene& scene, const std::vector<Ending>& endings, const Crew& crew) {
  for (const Ending& ending : endings) {
    const bool former = std::erase_if(formers_, [&](const Former& candidate) {
                          return candidate.pid == ending.child.pid;
                        }) > 0;
    if (ending.killed) {
      if (ending.child.struck) ++report_.kills;  // not those who would not end when asked
      continue;
    }
    // It ended by itself before it could be killed: another one has to die instead.
    if (ending.child.struck) kills_.push_back({0, "orders", 0});
    if (ending.child.role == scene.gate && ending.exit_code == exit_ok) gate_ended_ = true;
    if (ending.exit_code == exit_ok) continue;
    if (ending.exit_code == 128 + SIGTERM) continue;  // asked to end before it could listen
    ONCE_TRY(explain(scene, ending, former, crew.last_words(ending.child)));
  }
  return {};
}

// A child ended with an error: was that to be expected?
Status Conductor::explain(const Scene& scene, const Ending& ending, bool former,
                          const std::string& words) {
  last_failure_ = words;
  // Mostly a zombie; but one that was frozen before it was the owner may become it when it wakes,
  // and then its successor is the one to be refused.
  if (words.starts_with("error[fenced]") && report_.owners_changed > 0) {
    news_ = fmt::format("refused {} (process {}): it was replaced", ending.child.role,
                        ending.child.pid);
    return {};
  }
  if (former && !scene.fenced) return {};
  // Nothing happened, or it will be looked up: a restart is the remedy.
  const bool again = ending.exit_code == exit_retry || ending.exit_code == exit_recheck ||
                     words.starts_with("error[busy]");
  if (again && ++failures_ < failures_max) return {};
  const Remedy remedy = ending.exit_code == exit_retry     ? Remedy::retry
                        : ending.exit_code == exit_recheck ? Remedy::recheck
                                                           : Remedy::stop;
  return fail(remedy, ending.exit_code == exit_corrupt ? "corrupt" : "child",
              fmt::format("the child \"{}\" ended with code {}: {}", ending.child.role,
                          ending.exit_code, words));
}

bool Conductor::due(const Strike& strike, std::int64_t now_ns) {
  if (reached_ < strike.at) return false;
  if (!due_since_ns_) due_since_ns_ = now_ns;
  return now_ns - *due_since_ns_ >= strike.delay_us * 1000;
}

// One strike at a time: a kill that is due, else a change of owner that is due.
Status Conductor::strike(const Scene& scene, Crew& crew) {
  const std::int64_t now_ns = system_clock().ticks_ns();
  const bool change_first =
      !changes_.empty() && (kills_.empty() || changes_.back().at < kills_.back().at);
  if (change_first) {
    if (!formers_.empty() || !due(changes_.back(), now_ns)) return {};
    const std::string role = scene.as.at(changes_.back().role);
    changes_.pop_back();
    due_since_ns_.reset();
    return change_owner(role, crew);
  }
  if (kills_.empty() || !due(kills_.back(), now_ns)) return {};
  std::string role = scene.as.at(kills_.back().role);
  if (role == scene.gate && gate_ended_) role = scene.roles.at(1);
  const Child* child = crew.find(role);
  if (child == nullptr || child->struck) return {};
  crew.kill(child->pid);
  news_ = fmt::format("killed {} (process {})", role, child->pid);
  kills_.pop_back();
  due_since_ns_.reset();
  return {};
}

// The owner is frozen and takes no notice; its successor starts; then it wakes up and goes on as
// if nothing had happened.
Status Conductor::change_owner(const std::string& role, Crew& crew) {
  const Child* owner = crew.find(role);
  if (owner == nullptr) return {};
  const std::int64_t now_ns = system_clock().ticks_ns();
  const pid_t pid = owner->pid;
  crew.signal(pid, SIGSTOP);
  crew.replace(pid);
  formers_.push_back({pid, now_ns + freeze_ns, now_ns + freeze_ns + zombie_ns, false});
  news_ = fmt::format("froze {} (process {}) and replaced it", role, pid);
  ++report_.owners_changed;
  return crew.start(role);
}

void Conductor::wake_formers(const Scene& scene, Crew& crew) {
  const std::int64_t now_ns = system_clock().ticks_ns();
  for (Former& former : formers_) {
    if (!former.awake && now_ns >= former.wake_ns) {
      crew.signal(former.pid, SIGCONT);
      former.awake = true;
    }
    // At the end of the load nothing comes that a zombie could try to handle: it is asked to go.
    const bool asked = !scene.fenced || sight_.done;
    if (former.awake && asked && now_ns >= former.dismiss_ns) crew.signal(former.pid, SIGTERM);
  }
}

void Conductor::show(const Scene& scene, Progress& progress) {
  constexpr int width = 24;
  const int filled = std::clamp(static_cast<int>(reached_ * width), 0, width);
  progress.show(fmt::format("  {:<6} [{:#<{}}{:.<{}}] {:>6} of {} · kills {} of {} · {}",
                            scene.title, "", filled, "", width - filled, grouped(sight_.handled),
                            grouped(scene.total), report_.kills, settings_.kills, news_),
                system_clock().ticks_ns());
}

}  // namespace once::cli
