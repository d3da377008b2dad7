// SPDX-License-Identifier: Apache-2.0
#include "operate/failure.h"

#include <utility>

namespace once::operate {

tl::unexpected<Error> fail_usage(std::string text) {
  return fail(Remedy::stop, "usage", std::move(text));
}

tl::unexpected<Error> fail_input(std::string text) {
  return fail(Remedy::stop, "input", std::move(text));
}

tl::unexpected<Error> fail_not_known(std::string text) {
  return fail(Remedy::stop, "not_known", std::move(text));
}

}  // namespace once::operate
