// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <memory>
#include <string_view>

#include "wire/pulsar/address.h"

namespace once::pulsar {

// Reads all partitions of a topic from the oldest message on, whatever the subscription of the URL:
// nobody gets fewer messages, and nothing is acknowledged.
[[nodiscard]] Result<std::unique_ptr<Source>> open_source_to_look(std::string_view url);
[[nodiscard]] Result<std::unique_ptr<Source>> open_source_to_look_at(Address address);

}  // namespace once::pulsar
