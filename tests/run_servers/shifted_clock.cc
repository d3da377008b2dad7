// SPDX-License-Identifier: Apache-2.0
// Loaded into a process (LD_PRELOAD), lets its clock of the wall be an hour ahead.
#include <dlfcn.h>
#include <time.h>

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  using Real = int (*)(clockid_t, timespec*);
  static const Real real = reinterpret_cast<Real>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int answer = real(clock, time);
  if (answer == 0 && clock == CLOCK_REALTIME) time->tv_sec += 3600;
  return answer;
}
