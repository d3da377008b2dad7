// SPDX-License-Identifier: Apache-2.0
#include "testing/judge.h"

#include <fmt/format.h>

#include <algorithm>

namespace once::testing {
namespace {

Finding finding(Finding::Kind kind, const std::string& id, std::string text) {
  Finding found;
  found.kind = kind;
  found.id = id;
  found.text = std::move(text);
  return found;
}

std::string effects_in_words(std::size_t count) {
  if (count == 0) return "no effect";
  return count == 1 ? "1 effect" : fmt::format("{} effects", count);
}

}  // namespace

Judge::Judge(const Plan& plan, const std::vector<std::string>& ids) : any_order_(plan.any_order) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    group_of_[ids[i]] = plan.options.order == Order::key ? plan.messages[i].key.value_or("") : "";
}

Judge::Books Judge::books_of(const std::vector<Effect>& effects) {
  Books books;
  for (const Effect& effect : effects) books[effect.id].push_back(effect.what);
  return books;
}

std::vector<Finding> Judge::expect(const Run& plain) {
  expected_ = plain.effects;
  std::vector<Finding> findings;
  const Books books = books_of(plain.effects);
  if (plain.stopped) findings.push_back(finding(Finding::Kind::stopped, {}, *plain.stopped));
  find_strays(books, findings);
  for (const auto& [id, outcome] : plain.outcomes)
    if (outcome == Outcome::Kind::applied && !books.contains(id))
      findings.push_back(
          finding(Finding::Kind::lost, id, "the handler said \"applied\", and there is no effect"));
  return findings;
}

std::vector<Finding> Judge::compare(const Run& run) const {
  std::vector<Finding> findings;
  if (run.stopped) findings.push_back(finding(Finding::Kind::stopped, {}, *run.stopped));
  const Books books = books_of(run.effects);
  find_strays(books, findings);
  compare_counts(books, findings);
  // Without some effects, or with too many, the order is wrong anyway.
  if (findings.empty() && !any_order_) compare_order(run.effects, findings);
  return findings;
}

void Judge::find_strays(const Books& books, std::vector<Finding>& findings) const {
  for (const auto& [id, what] : books)
    if (!group_of_.contains(id))
      findings.push_back(finding(Finding::Kind::stray, id, "an effect, and no message has its id"));
}

void Judge::compare_counts(const Books& books, std::vector<Finding>& findings) const {
  const Books expected = books_of(expected_);
  for (const auto& [id, group] : group_of_) {
    const auto should = expected.find(id);
    const auto is = books.find(id);
    auto wanted = should == expected.end() ? std::vector<std::string>() : should->second;
    auto got = is == books.end() ? std::vector<std::string>() : is->second;
    std::sort(wanted.begin(), wanted.end());
    std::sort(got.begin(), got.end());
    if (got == wanted) continue;
    if (got.size() == wanted.size()) {
      const auto [ours, theirs] = std::mismatch(got.begin(), got.end(), wanted.begin());
      findings.push_back(finding(Finding::Kind::changed, id,
                                 fmt::format("has the effect \"{}\", not \"{}\"", *ours, *theirs)));
      continue;
    }
    const bool more = got.size() > wanted.size();
    findings.push_back(finding(more ? Finding::Kind::doubled : Finding::Kind::lost, id,
                               fmt::format("has {}, not {}", effects_in_words(got.size()),
                                           effects_in_words(wanted.size()))));
  }
}

std::map<std::string, std::vector<Effect>> Judge::by_group(
    const std::vector<Effect>& effects) const {
  std::map<std::string, std::vector<Effect>> groups;
  for (const Effect& effect : effects) groups[group_of_.at(effect.id)].push_back(effect);
  return groups;
}

void Judge::compare_order(const std::vector<Effect>& effects,
                          std::vector<Finding>& findings) const {
  const auto expected = by_group(expected_);
  for (const auto& [group, got] : by_group(effects)) {
    const std::vector<Effect>& wanted = expected.at(group);
    const auto [ours, theirs] = std::mismatch(got.begin(), got.end(), wanted.begin());
    if (ours == got.end()) continue;
    findings.push_back(
        finding(Finding::Kind::reordered, ours->id,
                fmt::format("took effect where it was the turn of \"{}\"", theirs->id)));
  }
}

}  // namespace once::testing
