// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/pulsar/address.h"

namespace once::pulsar {

// Pulsar's admin API, as far as it is needed to make and remove topics: the binary protocol cannot.
// Needs `web=` in the URL.

// 0 partitions: a topic that is not partitioned. False: it is there already, with as many or not.
[[nodiscard]] Result<bool> create_topic(const Address& address, std::uint32_t partitions);
// False: there is none.
[[nodiscard]] Result<bool> delete_topic(const Address& address, bool is_partitioned);

// Of an answer of HTTP/1.0 the status; 0 if it is none.
int http_status(std::string_view answer);

}  // namespace once::pulsar
