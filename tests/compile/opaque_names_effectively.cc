// SPDX-License-Identifier: Apache-2.0
// expect: an opaque effect is at most once or at least once
#include <once/effect.h>

using namespace once;

#ifdef RIGHT
constexpr Semantics chosen = Semantics::at_most_once;
#else
constexpr Semantics chosen = Semantics::effectively_once;
#endif

Handler mail(Outside::Run send_mail) { return handler_of(Opaque<chosen>{send_mail}); }
