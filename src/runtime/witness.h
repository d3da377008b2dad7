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
// it is compared and left out. Only compaction removes a message and keeps older ones; the ends of
// transactions have offsets, but none that a message had. Used by one thread.
class WitnessCheck {
 public:
  WitnessCheck() = default;
  // Of a partition of a source with these traits.
  WitnessCheck(const Position& position, const SourceTraits& traits, std::string_view partition);

  // Moves the source to the last handled message, or, where it is no longer there, to the position.
  [[nodiscard]] Status seek(SourceReplay& source, std::string_view partition);

  // The next batch of the partition. An error with the tag "gone" if it is from another topic.
  [[nodiscard]] Status check(std::string_view scope, Batch& batch);

  // The source has delivered everything that it shows; an error as above. False: the last handled
  // message was not among it, and the source is to be read to its end once more. A broker that was
  // just started, and a log whose writer has not come back after a power cut, show less than there
  // is: nothing is decided until the source shows the position.
  [[nodiscard]] Result<bool> check_end(std::string_view scope, SourceReplay& source,
                                       std::string_view partition);

  // After `seek`: the next batch is going to be compared.
  bool is_pending() const { return pending_; }

 private:
  bool shows_position(SourceReplay& source, std::string_view partition) const;
  Status missing(std::string_view scope, std::string_view partition) const;

  Position position_;
  bool is_compacted_ = false;
  bool pending_ = false;
  bool was_at_end_ = false;
  bool is_shown_ = false;  // the position, before the last reading
};

}  // namespace once
