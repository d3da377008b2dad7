// SPDX-License-Identifier: Apache-2.0
// expect: this effect cannot keep this promise
#include <once/effect.h>

using namespace once;

#ifdef RIGHT
using Mail = Opaque<Semantics::at_least_once>;
#else
using Mail = Opaque<Semantics::at_most_once>;
#endif

auto start(Source& source, Store& store, Outside::Run send_mail) {
  return make_pipeline<Semantics::at_least_once>(source, store, Mail{send_mail}, {});
}
