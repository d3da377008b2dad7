// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace once::bench {

// A benchmark that fails has no figure: say why and end.
[[noreturn]] void give_up(const Error& error);
[[noreturn]] void give_up(std::string_view text);

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// What the command line says.
struct Settings {
  std::string directory;  // where the files that are measured live; a real disk, please
  std::string results;    // where the JSON goes
  bool quick = false;     // tiny sizes, to see that everything runs; the figures mean nothing
  std::size_t rounds = 9;
  std::size_t warm_up_rounds = 1;

  std::size_t size(std::size_t full, std::size_t small) const { return quick ? small : full; }
};

enum class Better : bool { higher, lower };

// Two things measured side by side.
struct Comparison {
  std::string name;  // with the unit of `ours` and `peer`
  double ours = 0;
  double peer = 0;
  double ratio = 0;  // the median of the rounds' ratios, not the ratio of the medians
  std::optional<double> aim;
  Better better = Better::higher;
  std::vector<double> ratios;  // of all rounds
};

// One round of one side: makes its files, measures, removes them; answers the figure.
using Round = std::function<double()>;

struct Plan {
  std::string name;
  std::optional<double> aim;
  Better better = Better::higher;
};

// Ours, peer, ours, peer, ... : on a shared machine neighbours disturb both sides alike, and the
// median of ratios of neighbours in time is steadier than the figures themselves.
Comparison compare(const Settings& settings, const Plan& plan, const Round& ours,
                   const Round& peer);

// Writes RESULTS/NAME.json: the settings of the run and the comparisons. `parameters` are those
// of this benchmark.
void write_results(const Settings& settings, const std::string& name,
                   const nlohmann::json& parameters, const std::vector<Comparison>& comparisons);

// Seconds since it was made.
class Stopwatch {
 public:
  Stopwatch();
  double seconds() const;

 private:
  long long started_ns_;
};

// A directory of its own inside the measured one, removed at the end.
class Workspace {
 public:
  explicit Workspace(const Settings& settings);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace();

  const std::string& directory() const { return directory_; }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }

 private:
  std::string directory_;
};

}  // namespace once::bench
