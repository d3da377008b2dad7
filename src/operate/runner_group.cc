// SPDX-License-Identifier: Apache-2.0
#include "operate/runner_group.h"

#include <fmt/format.h>

#include <utility>

#include "base/exception.h"

namespace once::operate {

Error of_pipeline(const std::string& name, Error error) {
  if (!name.empty()) error.text = fmt::format("pipeline \"{}\": {}", name, error.text);
  return error;
}

RunnerGroup::Running::Running(Member made, std::optional<std::int64_t> wait_s,
                              std::function<bool()> is_stopped)
    : member(std::move(made)), patience(wait_s, member.observer, std::move(is_stopped)) {}

Result<std::unique_ptr<RunnerGroup>> RunnerGroup::open(std::vector<Member> members,
                                                       std::optional<std::int64_t> wait_s) {
  std::unique_ptr<RunnerGroup> made(new RunnerGroup);
  for (Member& member : members)
    made->members_.push_back(std::make_unique<Running>(
        std::move(member), wait_s, [group = made.get()] { return group->is_stopped(); }));
  for (const auto& running : made->members_) {
    auto turn = made->open_turn(*running);
    if (!turn) return fail(of_pipeline(running->member.name, std::move(turn).error()));
    running->turn = std::move(*turn);
  }
  return made;
}

Result<RunnerGroup::Turn> RunnerGroup::open_turn(Running& running) {
  OpenedJob opened = ONCE_TRY(running.member.open(running.patience));
  opened.job.options.observer = running.member.observer;
  opened.job.sinks = &sinks_;
  Turn turn{.parts = std::move(opened.parts), .runner = {}};
  turn.runner = ONCE_TRY(Runner::make(std::move(opened.job), running.patience));
  return turn;
}

Status RunnerGroup::run() {
  try {
    for (std::size_t i = 1; i < members_.size(); ++i)
      members_[i]->thread = std::thread([this, &running = *members_[i]] { work(running); });
    work(*members_.front());
  } catch (const std::exception& exception) {  // a thread could not be had
    keep(*members_.front(), error_from_exception(exception));
  }
  for (const auto& running : members_)
    if (running->thread.joinable()) running->thread.join();
  const std::scoped_lock lock(mutex_);
  if (error_) return fail(*error_);
  return {};
}

void RunnerGroup::work(Running& running) {
  try {
    if (const Status ran = run_turns(running); !ran) keep(running, ran.error());
  } catch (const std::exception& exception) {
    keep(running, error_from_exception(exception));
  }
}

Status RunnerGroup::run_turns(Running& running) {
  while (true) {
    const Status ran = running.turn.runner->run();
    const bool is_over = !running.turn.runner->was_overtaken() || is_stopped();
    close_turn(running);
    if (is_over) return ran;
    running.member.observer({.severity = Severity::warning,
                             .kind = EventKind::standing_by,
                             .text = fmt::format("{}; standing by", ran.error().text),
                             .tag = ran.error().tag});
    auto next = open_turn(running);
    if (is_stopped()) return {};
    if (!next) return fail(std::move(next).error());
    const std::scoped_lock lock(mutex_);
    running.turn = std::move(*next);
    if (stopped_) running.turn.runner->stop();
  }
}

// At once, in the member's own thread: what others of its group wait for is given back while the
// rest goes on, and the sources of all are closed at the same time.
void RunnerGroup::close_turn(Running& running) {
  Turn over;  // destroyed without the lock
  const std::scoped_lock lock(mutex_);
  running.last = running.turn.runner->statistics();
  over = std::exchange(running.turn, {});
}

void RunnerGroup::keep(const Running& running, const Error& error) {
  {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = of_pipeline(running.member.name, error);
  }
  stop();
}

bool RunnerGroup::is_stopped() const {
  const std::scoped_lock lock(mutex_);
  return stopped_;
}

void RunnerGroup::stop() {
  const std::scoped_lock lock(mutex_);
  stopped_ = true;
  for (const auto& running : members_)
    if (running->turn.runner) running->turn.runner->stop();
}

// All at the same time, since each may take a while.
void RunnerGroup::give_up() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::jthread> leaving;
  for (const auto& running : members_)
    if (Runner* runner = running->turn.runner.get(); runner != nullptr)
      leaving.emplace_back([runner] { runner->give_up(); });
}

std::vector<MemberStatistics> RunnerGroup::statistics() const {
  const std::scoped_lock lock(mutex_);
  std::vector<MemberStatistics> found;
  for (const auto& running : members_)
    found.push_back({running->member.name,
                     running->turn.runner ? running->turn.runner->statistics() : running->last});
  return found;
}

}  // namespace once::operate
