// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "model/topic_address.h"

namespace once {

// Where the topics of a URL are; unset if it is no URL of a topic.
[[nodiscard]] std::optional<TopicAddress> topic_address_of(std::string_view url);

// The first topic to which both URLs lead, however they are written: one of several topics, a
// relative or an absolute path, a path through a link, with or without the usual port, by another
// broker of a list. Unset if there is none, or if one of the two is no URL of a topic. The one
// comparison of topics: what would read its own messages without end is found by it.
[[nodiscard]] std::optional<SharedTopic> shared_topic(std::string_view one, std::string_view other);

}  // namespace once
