// SPDX-License-Identifier: Apache-2.0
#include "model/resuming.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <string_view>

#include "base/mutant.h"

namespace once {
namespace {

bool is_plain(const Entry& entry) {
  return entry.deferral.number == 0 && !entry.replays_parked && entry.order_key.data() == nullptr;
}

// The outcome of a record that may be had again; none: it may not.
std::optional<Outcome::Kind> resumed_outcome(const Entry& entry, const Verdict& verdict) {
  const Outcome::Kind stored = verdict.stored.kind;
  const bool known =
      verdict.kind == Verdict::Kind::duplicate || verdict.kind == Verdict::Kind::mismatch;
  if (entry.deferral.number != 0 && known &&
      (stored == Outcome::Kind::later || mutant(Mutant::later_handled_twice)))
    return stored;
  if (entry.replays_parked && verdict.kind == Verdict::Kind::duplicate &&
      stored == Outcome::Kind::parked)
    return stored;
  return std::nullopt;
}

}  // namespace

Result<std::vector<Verdict>> Resuming::admit_resuming(std::span<const Entry> entries) {
  if (std::all_of(entries.begin(), entries.end(), is_plain)) return admit_plain(entries);
  std::deque<bool> gone(entries.size(), false);
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].deferral.number != 0 && !mutant(Mutant::later_handled_twice))
      ONCE_TRY(ask_gone(entries[i], gone[i]));
  ONCE_TRY(await_answers());
  std::vector<Entry> here;
  std::vector<std::size_t> indexes;
  std::vector<Verdict> verdicts(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (gone[i]) {
      verdicts[i] = {.kind = Verdict::Kind::duplicate, .stored = later({}, 0)};
      continue;
    }
    here.push_back(entries[i]);
    indexes.push_back(i);
  }
  if (here.empty()) return verdicts;
  auto answers = ONCE_TRY(admit_plain(here));
  ONCE_TRY(resume_all(here, answers));
  for (std::size_t i = 0; i < here.size(); ++i)
    if (answers[i].kind == Verdict::Kind::fresh && here[i].order_key.data() != nullptr)
      ONCE_TRY(ask_behind(here[i], answers[i]));
  ONCE_TRY(await_answers());
  for (std::size_t i = 0; i < here.size(); ++i) verdicts[indexes[i]] = std::move(answers[i]);
  return verdicts;
}

// Of copies in one span the first is had again; the others are its duplicates.
Status Resuming::resume_all(std::span<const Entry> entries, std::span<Verdict> verdicts) {
  std::set<std::string_view> resumed;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto from = resumed_outcome(entries[i], verdicts[i]);
    if (!from) continue;
    const bool first = resumed.insert(entries[i].id).second;
    verdicts[i] = {.kind = first ? Verdict::Kind::fresh : Verdict::Kind::duplicate, .stored = {}};
    if (first) ONCE_TRY(resume(entries[i], *from));
  }
  return {};
}

}  // namespace once
