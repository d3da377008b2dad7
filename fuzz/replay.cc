// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over its corpus and over seeded mutations of it, without libFuzzer.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr int mutations_per_run = 5000;
constexpr std::size_t input_bytes_max = 1 << 16;

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::string mutated(std::string input, const std::vector<std::string>& inputs,
                    std::mt19937_64& random) {
  const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : random() % limit; };
  for (std::size_t steps = 1 + below(4); steps > 0; --steps) {
    const std::size_t at = below(input.size() + 1);
    const std::size_t length = std::min(input.size() - at, 1 + below(16));
    switch (below(6)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      case 1: input.insert(at, 1 + below(8), static_cast<char>(random())); break;
      case 2: input.erase(at, length); break;
      case 3: input.resize(at); break;
      case 4: std::fill_n(input.begin() + static_cast<std::ptrdiff_t>(at), length, '\xff'); break;
      default: {
        const std::string& other = inputs[below(inputs.size())];
        input = input.substr(0, at) + other.substr(below(other.size() + 1));
      }
    }
    if (input.size() > input_bytes_max) input.resize(input_bytes_max);
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]), 2;
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(argv[1]))
    for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
      if (entry.is_regular_file()) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs{""};
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (paths.empty()) return std::fprintf(stderr, "%s has no inputs\n", argv[1]), 1;

  for (const std::string& input : inputs) run(input);
  std::mt19937_64 random(20240601);
  for (int i = 0; i < mutations_per_run; ++i)
    run(mutated(inputs[random() % inputs.size()], inputs, random));
  std::printf("%zu inputs and %d mutations\n", inputs.size(), mutations_per_run);
  return 0;
}
