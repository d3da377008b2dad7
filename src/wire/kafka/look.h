// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <memory>
#include <string_view>

namespace once::kafka {

// Reads all partitions of a topic without joining the group of the URL: nobody loses a partition,
// and nothing is committed. `start=committed` begins where the group is.
[[nodiscard]] Result<std::unique_ptr<Source>> open_source_to_look(std::string_view url);

// Compares the settings of a sink with one another and with what its broker allows. Enters no
// producer and writes nothing.
[[nodiscard]] Status check_sink(std::string_view url);

}  // namespace once::kafka
