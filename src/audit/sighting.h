// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <array>
#include <compare>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace once::audit {

// That a message with some id was seen at some place. An id is known by 128 bits of SHA-256.
struct Sighting {
  std::array<std::uint8_t, 16> digest{};
  std::uint32_t side = 0;       // which of the topics that are compared
  std::uint32_t partition = 0;  // a number of the audit's own
  std::int64_t offset = 0;

  auto operator<=>(const Sighting&) const = default;
};

// Sorts any number of sightings in a bounded amount of memory: what does not fit is sorted and put
// aside in files that have no name, so that nothing is left behind, however this ends.
class SightingSorter {
 public:
  SightingSorter(std::string directory, std::size_t bytes_max);

  [[nodiscard]] Status add(const Sighting& sighting);
  // All of them in order; after this it is empty.
  [[nodiscard]] Status visit(const std::function<void(const Sighting&)>& take);

  std::size_t files() const { return runs_.size(); }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  Status spill();
  Status merge(const std::function<void(const Sighting&)>& take);

  const std::string directory_;
  const std::size_t count_max_;
  std::vector<Sighting> present_;
  std::vector<File> runs_;  // each sorted
};

}  // namespace once::audit
