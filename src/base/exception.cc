// SPDX-License-Identifier: Apache-2.0
#include "base/exception.h"

#include <fmt/format.h>

#include <new>
#include <system_error>

namespace once {

Error error_from_exception(const std::exception& exception) {
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr)
    return {Remedy::retry, "exhausted",
            "there is no memory left; raise the limit, or use fewer lanes and smaller batches",
            std::nullopt};
  const auto* const system = dynamic_cast<const std::system_error*>(&exception);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
    return {Remedy::retry, "exhausted",
            "no thread could be started; raise the limit of threads or memory, or use fewer lanes",
            std::nullopt};
  return {Remedy::recheck, "internal", exception.what(), std::nullopt};
}

}  // namespace once
