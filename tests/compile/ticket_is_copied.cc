// SPDX-License-Identifier: Apache-2.0
// expect: use of deleted function|call to implicitly-deleted copy constructor
#include <once/claims.h>

#include <utility>

using namespace once;

Ticket second_right(Ticket& ticket) {
#ifdef RIGHT
  return std::move(ticket);
#else
  return ticket;
#endif
}
