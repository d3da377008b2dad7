// SPDX-License-Identifier: Apache-2.0
#include "operate/job.h"

#include <string_view>

#include "base/url.h"

namespace once::operate {

HintPlace hint_place_of(const Job& job) {
  const bool is_public = shown_url(job.store_url) == job.store_url;
  return {.scope = job.options.scope, .store = is_public ? job.store_url : std::string_view()};
}

Error with_complete_hints(Error error, const Job& job) {
  error.text = once::with_complete_hints(error.text, hint_place_of(job));
  return error;
}

}  // namespace once::operate
