// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/transaction.h>

#include <cstdint>
#include <span>
#include <vector>

namespace once {

// How a transaction admits messages that have a record already and are to be handled again: those
// that waited in the store and are due, and parked ones that were sent again. The same for every
// store, which adds how it looks and writes.
class Resuming {
 public:
  virtual ~Resuming() = default;

 protected:
  Result<std::vector<Verdict>> admit_resuming(std::span<const Entry> entries);

  // Whether a message no longer waits as it was read; if not, that stays so until the commit, or
  // spoils it. In a store that was restored another message may have its number. The answer may be
  // given as late as by `await_answers`, also that of `ask_behind`.
  virtual Status ask_gone(const Entry& entry, bool& gone) = 0;
  // As if nothing had ever waited or been parked.
  virtual Result<std::vector<Verdict>> admit_plain(std::span<const Entry> entries) = 0;
  // Makes a record whose outcome is `from` that of an id admitted now; removes it from what is
  // parked if it was.
  virtual Status resume(const Entry& entry, Outcome::Kind from) = 0;
  // The last message of the entry's key that waits before it, and in which time it is due.
  virtual Status ask_behind(const Entry& entry, Verdict& verdict) = 0;
  virtual Status await_answers() { return {}; }

 private:
  Status resume_all(std::span<const Entry> entries, std::span<Verdict> verdicts);
};

}  // namespace once
