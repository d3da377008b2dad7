// SPDX-License-Identifier: Apache-2.0
#include <once/clock.h>

#include <chrono>

namespace once {
namespace {

class SystemClock final : public Clock {
 public:
  std::int64_t now_ms() override {
    using std::chrono::duration_cast, std::chrono::milliseconds, std::chrono::system_clock;
    return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  }
  std::int64_t ticks_ns() override {
    using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::steady_clock;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
  }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;  // stateless, so it may be shared
  return clock;
}

}  // namespace once
