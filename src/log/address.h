// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <string>

#include "base/url.h"

namespace once {

// A topic of the embedded log.
struct LogAddress {
  std::string directory;
  std::string topic;

  bool operator==(const LogAddress&) const = default;
};

// file:DIR/TOPIC; the last part of the path is the topic. Errors have the tag "url".
Result<LogAddress> log_address_of(const Url& url);

}  // namespace once
