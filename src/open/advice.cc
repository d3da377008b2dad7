// SPDX-License-Identifier: Apache-2.0
#include "open/advice.h"

#include "base/url.h"
#ifdef ONCE_WITH_KAFKA
#include "wire/kafka/library.h"
#endif

namespace once {

std::vector<std::string> advice_about(std::string_view url) {
  const auto parts = parse_url(url);
#ifdef ONCE_WITH_KAFKA
  if (parts && parts->scheme == "kafka") return kafka::library_advice();
#endif
  return {};
}

}  // namespace once
