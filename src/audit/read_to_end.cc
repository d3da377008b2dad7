// SPDX-License-Identifier: Apache-2.0
#include "audit/read_to_end.h"

#include <once/open.h>

#include "audit/looking_url.h"
#include "base/url.h"
#include "model/start_at.h"
#include "open/look.h"

namespace once::audit {

Result<std::string> url_that_ends(const std::string& url) {
  const Url parts = ONCE_TRY(parse_url(url));
  if (parts.parameter("end") != nullptr) return url;
  return url + (parts.parameters.empty() ? "?" : "&") + "end=stop";
}

Status read_to_end(const std::string& url, const std::function<Status(const Delivery&)>& take) {
  constexpr std::size_t count_max = 1000;
  constexpr std::int64_t wait_ms = 1000;
  const LookingUrl looking = ONCE_TRY(looking_url(url));
  const auto source = ONCE_TRY(open_source_to_look(ONCE_TRY(url_that_ends(looking.source))));
  while (true) {
    const Batch batch = ONCE_TRY(source->poll(count_max, wait_ms));
    if (batch.event == Batch::Event::end) return {};
    if (batch.event == Batch::Event::assigned && source->traits().replayable)
      ONCE_TRY(start_at(*source, batch.partition, -1));
    for (const Delivery& delivery : batch.deliveries) ONCE_TRY(take(delivery));
  }
}

}  // namespace once::audit
