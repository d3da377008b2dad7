// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <amqp.h>
#include <once/result.h>

#include <string_view>

namespace once::rabbitmq {

// What the broker means when it closes a channel or a connection: "WHERE: cannot WHAT: ...;
// advice".
Error error_from_broker(int code, std::string_view text, std::string_view where,
                        std::string_view what);

// What a status of librabbitmq means. `entering`: before the broker has let us in, where a broken
// protocol shows that nobody on the other side speaks it. `native`: more words about it.
Error error_from_library(int status, std::string_view where, std::string_view what,
                         bool entering = false, std::string_view native = {});

}  // namespace once::rabbitmq
