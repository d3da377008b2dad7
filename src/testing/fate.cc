// SPDX-License-Identifier: Apache-2.0
#include "testing/fate.h"

#include <fmt/format.h>

namespace once::testing {
namespace {

constexpr std::size_t words_max = 100;  // of a statement, in a line for people

}  // namespace

std::string Fate::describe(std::string_view what) const {
  std::string text(what.substr(0, words_max));
  if (what.size() > words_max) text += "...";
  if (!handling_.empty()) text += fmt::format(", for \"{}\"", handling_);
  return text;
}

Fault Fate::die(Call call, std::string_view what) {
  dead_ = true;
  ++deaths_;
  note(fmt::format("the process dies {}: {}", call == Call::answer ? "after" : "before",
                   describe(what)));
  return Fault::death;
}

Fault Fate::next(Call call, std::string_view what) {
  if (dead_) return Fault::death;
  ++calls_;
  if (calls_ == misfortune_.death_at) return die(call, what);
  if (deaths_ + faults_ >= misfortune_.faults_max) return Fault::none;
  if (dice_.below(1000) >= misfortune_.per_mille) return Fault::none;
  const Fault fault = by_chance(call);
  switch (fault) {
    case Fault::none: return fault;
    case Fault::death: return die(call, what);
    case Fault::away: note(fmt::format("the store refuses: {}", describe(what))); break;
    case Fault::lost_before:
      note(fmt::format("never arrives, and nobody knows: {}", describe(what)));
      break;
    case Fault::lost_after:
      note(fmt::format("is done, but its answer is lost: {}", describe(what)));
      break;
  }
  ++faults_;
  return fault;
}

Fault Fate::by_chance(Call call) {
  switch (call) {
    case Call::answer: return dice_.below(2) == 0 ? Fault::death : Fault::none;
    case Call::commit:
      switch (dice_.below(4)) {
        case 0: return Fault::death;
        case 1: return Fault::away;
        case 2: return Fault::lost_before;
        default: return Fault::lost_after;
      }
    case Call::ask:
    case Call::read:
    case Call::write: break;
  }
  return dice_.below(3) == 0 ? Fault::death : Fault::away;
}

}  // namespace once::testing
