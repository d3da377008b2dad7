// SPDX-License-Identifier: Apache-2.0
#include "runtime/parked_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/hint.h"
#include "model/reason.h"

namespace once {

ParkedShare::ParkedShare(std::optional<ParkedLimit> limit)
    : limit_(limit), window_(limit ? limit->window : 0) {}

void ParkedShare::settled(std::uint64_t count) {
  if (!limit_) return;
  const std::lock_guard lock(mutex_);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, window_.size()); ++i)
    add(not_parked);
}

void ParkedShare::parked(std::string_view reason) {
  if (!limit_) return;
  const std::lock_guard lock(mutex_);
  add(index_of(reason));
}

void ParkedShare::add(std::size_t reason) {
  if (filled_ < window_.size())
    ++filled_;
  else if (const std::size_t oldest = window_[next_]; oldest != not_parked) {
    --parked_;
    --reasons_[oldest - 1].count;
  }
  window_[next_] = reason;
  next_ = (next_ + 1) % window_.size();
  if (reason == not_parked) return;
  ++parked_;
  ++reasons_[reason - 1].count;
}

// There are never more kinds of reasons than messages in the window: one that is no longer in it
// gives its place away.
std::size_t ParkedShare::index_of(std::string_view reason) {
  std::string kind = masked(reason);
  auto place = std::find_if(reasons_.begin(), reasons_.end(),
                            [&](const Reason& known) { return known.kind == kind; });
  if (place == reasons_.end())
    place = std::find_if(reasons_.begin(), reasons_.end(),
                         [](const Reason& known) { return known.count == 0; });
  if (place == reasons_.end()) place = reasons_.insert(place, Reason{});
  place->kind = std::move(kind);
  place->example = reason;
  return static_cast<std::size_t>(place - reasons_.begin()) + 1;
}

std::optional<Error> ParkedShare::exceeded(std::string_view scope) const {
  if (!limit_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (filled_ < limit_->messages_min || parked_ == 0 || parked_ * 100 < filled_ * limit_->percent)
    return std::nullopt;
  return error_of(scope);
}

std::optional<Error> ParkedShare::exceeded_at_end(std::string_view scope) const {
  if (!limit_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (filled_ < messages_min_at_end || parked_ < filled_) return std::nullopt;
  return error_of(scope);
}

Error ParkedShare::error_of(std::string_view scope) const {
  const auto most =
      std::max_element(reasons_.begin(), reasons_.end(),
                       [](const Reason& a, const Reason& b) { return a.count < b.count; });
  return Error{Remedy::park, "parked",
               fmt::format("{} of the last {} messages were parked, and parked_max is {} %; most "
                           "often ({} times): {}. Nothing is lost. Look at them with {}, "
                           "repair the cause, start again, and replay them: `once park replay "
                           "--help`",
                           parked_, filled_, limit_->percent, most->count, most->example,
                           hint({"park", "ls", "--scope", scope})),
               std::nullopt};
}

}  // namespace once
