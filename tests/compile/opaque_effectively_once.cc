// SPDX-License-Identifier: Apache-2.0
// expect: this effect cannot keep this promise
#include <once/effect.h>

using namespace once;

#ifdef RIGHT
constexpr Semantics promise = Semantics::at_least_once;
#else
constexpr Semantics promise = Semantics::effectively_once;
#endif

auto start(Source& source, Store& store, Outside::Run send_mail) {
  return make_pipeline<promise>(source, store, Opaque<Semantics::at_least_once>{send_mail}, {});
}
