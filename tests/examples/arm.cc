// SPDX-License-Identifier: Apache-2.0
// Linked to an example, it arms the failpoint that ONCE_POINT names before `main` begins. So the
// examples themselves show nothing that a user does not need.
#include <cstdio>
#include <cstdlib>

#include "base/failpoint.h"

namespace {

const bool armed = [] {
  if (once::arm_point_from_environment()) return true;
  std::fprintf(stderr, "ONCE_POINT names no failpoint\n");
  std::exit(2);
}();

}  // namespace
