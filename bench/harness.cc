// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

namespace once::bench {
namespace {

using nlohmann::json;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

// Five digits that count: more would only pretend to be measured.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10, 4 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

// How long the disk takes to make one page durable; the figure behind all figures here.
double sync_us(const Settings& settings) {
  const Workspace workspace(settings);
  const int file = ::open(workspace.path("sync").c_str(), O_RDWR | O_CREAT, 0666);
  if (file < 0) give_up("cannot make a file in " + settings.directory);
  const std::string page(4096, 'x');
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) {
    const Stopwatch watch;
    if (::pwrite(file, page.data(), page.size(), i * 4096) != 4096 || ::fdatasync(file) != 0)
      give_up("cannot write in " + settings.directory);
    times.push_back(watch.seconds() * 1e6);
  }
  ::close(file);
  return median(times);
}

json describe(const Settings& settings) {
  utsname system{};
  ::uname(&system);
  return {{"quick", settings.quick},
          {"rounds", settings.rounds},
          {"warm_up_rounds", settings.warm_up_rounds},
          {"processor", processor_name()},
          {"cores", std::thread::hardware_concurrency()},
          {"kernel", system.release},
          {"compiler", __VERSION__},
          {"sqlite", sqlite3_libversion()},
          {"sync_of_one_page_us", rounded(sync_us(settings))}};
}

json describe(const Comparison& comparison) {
  std::vector<double> ratios;
  for (const double ratio : comparison.ratios) ratios.push_back(rounded(ratio));
  return {{"name", comparison.name},
          {"ours", rounded(comparison.ours)},
          {"peer", rounded(comparison.peer)},
          {"ratio", rounded(comparison.ratio)},
          {"aim", comparison.aim ? json(*comparison.aim) : json(nullptr)},
          {"better", comparison.better == Better::higher ? "higher" : "lower"},
          {"ratios", ratios}};
}

}  // namespace

void give_up(std::string_view text) {
  std::cerr << "bench: " << text << "\n";
  std::exit(1);
}

void give_up(const Error& error) { give_up(fmt::format("{} ({})", error.text, error.tag)); }

Comparison compare(const Settings& settings, const Plan& plan, const Round& ours,
                   const Round& peer) {
  for (std::size_t i = 0; i < settings.warm_up_rounds; ++i) {
    ours();
    peer();
  }
  std::vector<double> our_figures, peer_figures;
  Comparison comparison{.name = plan.name,
                        .ours = 0,
                        .peer = 0,
                        .ratio = 0,
                        .aim = plan.aim,
                        .better = plan.better,
                        .ratios = {}};
  for (std::size_t i = 0; i < settings.rounds; ++i) {
    our_figures.push_back(ours());
    peer_figures.push_back(peer());
    comparison.ratios.push_back(our_figures.back() / peer_figures.back());
  }
  comparison.ours = median(our_figures);
  comparison.peer = median(peer_figures);
  comparison.ratio = median(comparison.ratios);
  std::cerr << fmt::format("  {}: {:.5g} against {:.5g}, ratio {:.3f}\n", comparison.name,
                           comparison.ours, comparison.peer, comparison.ratio);
  return comparison;
}

void write_results(const Settings& settings, const std::string& name, const json& parameters,
                   const std::vector<Comparison>& comparisons) {
  json all = {{"settings", describe(settings)}, {"parameters", parameters}};
  all["comparisons"] = json::array();
  for (const Comparison& comparison : comparisons)
    all["comparisons"].push_back(describe(comparison));
  std::filesystem::create_directories(settings.results);
  const std::string path = settings.results + "/" + name + ".json";
  std::ofstream file(path);
  file << all.dump(2) << "\n";
  if (!file.flush()) give_up("cannot write " + path);
}

Stopwatch::Stopwatch() : started_ns_(std::chrono::steady_clock::now().time_since_epoch().count()) {}

double Stopwatch::seconds() const {
  const long long now_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  return static_cast<double>(now_ns - started_ns_) * 1e-9;
}

Workspace::Workspace(const Settings& settings) {
  std::filesystem::create_directories(settings.directory);
  std::string name = settings.directory + "/once-bench-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) give_up("cannot make a directory " + name);
  directory_ = name;
}

Workspace::~Workspace() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

}  // namespace once::bench
