// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <librdkafka/rdkafka.h>
#include <once/result.h>

#include <string_view>

namespace once::kafka {

// What an error of librdkafka or of a broker means for us: "WHERE: cannot WHAT: ...; advice".
Error error_from_kafka(rd_kafka_resp_err_t code, std::string_view where, std::string_view what,
                       std::string_view native = {});

}  // namespace once::kafka
