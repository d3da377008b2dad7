// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/pipeline.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// How many of the last messages were parked, and why. A pipeline that parks nearly everything has
// a cause that a person has to repair, a wrong statement or a wrong id rule; going on would only
// move the whole topic to the parked messages. Any thread.
class ParkedShare {
 public:
  explicit ParkedShare(std::optional<ParkedLimit> limit);

  // So many messages were settled otherwise. Duplicates do not count: they are no work.
  void settled(std::uint64_t count);
  void parked(std::string_view reason);

  // The error of a share that has reached the limit; unset while it has not.
  std::optional<Error> exceeded(std::string_view scope) const;
  // The same at the end of a run: fewer messages say enough if all of them were parked. One that
  // was replayed alone, or a topic with a handful of bad messages at its end, does not.
  std::optional<Error> exceeded_at_end(std::string_view scope) const;

 private:
  struct Reason {
    std::string kind;     // masked
    std::string example;  // the last one
    std::size_t count = 0;
  };
  static constexpr std::size_t not_parked = 0;
  static constexpr std::size_t messages_min_at_end = 20;

  Error error_of(std::string_view scope) const;
  void add(std::size_t reason);
  std::size_t index_of(std::string_view reason);

  const std::optional<ParkedLimit> limit_;
  mutable std::mutex mutex_;
  std::vector<std::size_t> window_;  // a ring: for each message its place in reasons_, plus 1
  std::size_t next_ = 0;             // in window_
  std::size_t filled_ = 0;
  std::size_t parked_ = 0;
  std::vector<Reason> reasons_;
};

}  // namespace once
