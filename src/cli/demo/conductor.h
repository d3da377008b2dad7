// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/demo/crew.h"
#include "cli/demo/load.h"
#include "cli/output.h"

namespace once::cli {

// How far the books have come, read from them.
struct Sight {
  std::int64_t handled = 0;  // offsets behind the position of the consumer of orders
  bool done = false;
};

// A play for the crew: who is in it, how to see how far it is, and what to call it.
struct Scene {
  std::string title;
  std::vector<std::string> roles;
  std::string gate;                       // the role that ends by itself, or empty
  std::map<std::string, std::string> as;  // planned role of a strike to the role that takes it
  std::int64_t total = 0;                 // how many offsets there will be to handle
  std::function<Result<Sight>(bool gate_ended)> look;
  bool fenced = true;  // a replaced owner is refused by itself; otherwise it is asked to go
};

struct SceneReport {
  std::int64_t kills = 0;           // children that died by SIGKILL, as the kernel told
  std::int64_t owners_changed = 0;  // frozen, replaced while alive, and woken again
  double seconds = 0;
};

// Runs a scene: starts its children, strikes as planned, restarts whoever died, until all is
// handled. An error when a child fails in a way that was not planned, when nothing moves any more,
// or when the user interrupts.
class Conductor {
 public:
  Conductor(const DemoSettings& settings, Output& output, std::function<bool()> interrupted)
      : settings_(settings), output_(output), interrupted_(std::move(interrupted)) {}

  Result<SceneReport> run(const Scene& scene);

 private:
  // An owner that is frozen, or was and is awake beside its successor.
  struct Former {
    pid_t pid = 0;
    std::int64_t wake_ns = 0;
    std::int64_t dismiss_ns = 0;  // when it notices that it was replaced, if it is not fenced
    bool awake = false;
  };

  Status restart(const Scene& scene, Crew& crew);
  Status strike(const Scene& scene, Crew& crew);
  Status change_owner(const std::string& role, Crew& crew);
  void wake_formers(const Scene& scene, Crew& crew);
  Status bury(const Scene& scene, const std::vector<Ending>& endings, const Crew& crew);
  Status explain(const Scene& scene, const Ending& ending, bool former, const std::string& words);
  bool due(const Strike& strike, std::int64_t now_ns);
  void show(const Scene& scene, Progress& progress);
  Status watch(const Scene& scene);

  const DemoSettings settings_;
  Output& output_;
  std::function<bool()> interrupted_;
  std::int64_t child_number_ = 0;

  // Of the scene that runs.
  std::vector<Strike> kills_;  // those to come, the next one last
  std::vector<Strike> changes_;
  std::vector<Former> formers_;
  SceneReport report_;
  Sight sight_;
  double reached_ = 0;
  std::optional<std::int64_t> due_since_ns_;
  bool gate_ended_ = false;
  std::string news_;
  std::int64_t moved_ns_ = 0;
  std::uint32_t failures_ = 0;
  std::string last_failure_ = "nothing";
};

}  // namespace once::cli
