// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace once {

// A topic to which two URLs lead.
struct SharedTopic {
  std::string name;
  // Otherwise the topics have the same name on brokers that are named differently: whether these
  // are of one cluster only the cluster can tell.
  bool is_certain = true;
};

// The first topic to which both URLs lead, however they are written: one of several topics, a
// relative or an absolute path, a path through a link, with or without the usual port, by another
// broker of a list. Unset if there is none, or if one of the two is no URL of a topic. The one
// comparison of topics: what would read its own messages without end is found by it.
[[nodiscard]] std::optional<SharedTopic> shared_topic(std::string_view one, std::string_view other);

// The same path from every directory, without links; it need not be there.
[[nodiscard]] std::string absolute_path(std::string_view path);
// The URL of a topic of the embedded log, the same from every directory.
[[nodiscard]] std::string file_url(std::string_view path);
// The same URL from every directory. What is no `file:` URL stays as it is.
[[nodiscard]] std::string absolute_url(std::string_view text);

}  // namespace once
