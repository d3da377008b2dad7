// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/source.h>
#include <once/transaction.h>

#include <string_view>

namespace once {

// Whether a partition is still the one that the store's position belongs to. Sources cannot always
// tell (SourceTraits::identity), but a topic that was deleted and created again under the same name
// has another message, or none, where the last handled one was. So reading begins at that message:
// it is compared and left out. Used by one thread.
class WitnessCheck {
 public:
  WitnessCheck() = default;
  explicit WitnessCheck(const Position& position) : position_(position) {}

  // Moves the source to the last handled message, or, where it is no longer there, to the position.
  [[nodiscard]] Status seek(SourceReplay& source, std::string_view partition);

  // The next batch of the partition. An error with the tag "gone" if it is from another topic.
  [[nodiscard]] Status check(std::string_view scope, Batch& batch);

  // After `seek`: the next batch is going to be compared.
  bool is_pending() const { return pending_; }

 private:
  Position position_;
  bool pending_ = false;
};

}  // namespace once
