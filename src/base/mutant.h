// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace once {

// Bugs that others shipped and that our tests must be able to find. They exist only in the build
// of the mutation test (ONCE_MUTANTS); elsewhere `mutant` is false at compile time and the bug is
// not in the program. docs/testing.md says where each comes from.
enum class Mutant : std::uint8_t {
  none,
  ack_before_sync,                // B01
  table_before_durable,           // B02
  drop_batch_for_one_duplicate,   // B03
  gap_resets_sequence,            // B05
  unknown_taken_for_failed,       // B07
  unknown_producer_accepted,      // B08
  snapshot_without_intervals,     // B09
  horizon_by_wall_clock,          // B11
  reordered_taken_for_duplicate,  // B12
  fsync_retried,                  // B16
  sync_failure_acknowledged,      // B17
  corruption_cut_as_torn_tail,    // B18
  bad_snapshot_deletes_data,      // B19
  roll_replaces_live_segment,     // our own: a roll behind no message removed what it wrote to
  no_directory_sync,              // B20
  rename_before_sync,             // B21
  position_before_effect,         // B24
  ledger_outside_transaction,     // B25
  zombie_not_fenced,              // B26
  unsafe_sync_mode_accepted,      // B32
  ack_what_was_polled,            // B33
  claim_without_lease,            // H3: whoever comes takes the claim
  stale_owner_settles,            // H4
  forgotten_claim_is_new,         // H8
  failed_claim_is_settled,        // H7: a failure is remembered as done
  lost_owner_counts_as_done,      // H2: claimed means handled
  waiting_does_not_count,         // a message that is retried becomes too old
  horizon_of_own_partitions,      // one member of a group forgets for all
  births_ahead_believed,          // a message from 2099 moves the horizon
  position_of_any_topic,          // a topic made anew is read from the old position
  missing_witness_accepted,       // ... if the end of a transaction is where its message was
  end_without_witness_accepted,   // ... or nothing is there that is delivered
  copy_of_freed_id_is_duplicate,  // the copy of a message without effect is lost
  revoked_in_doubt_leaks,         // a lane's queue is full for good
  relay_ignores_enter,            // what a destination has of another past is not compared
  relay_ignores_content,          // what a clone of the store has sent is taken for our own
  relay_sends_by_number,          // numbers are drawn early, sequences are given at commit
  later_overtaken,                // a message overtakes one of its key that waits in the store
  later_handled_twice,            // two owners handle a waiting message
  unsynced_batches_handed_out,    // a fetch sees what a power cut can take back
  raw_batch_offset_not_set,       // the offsets of a record batch stay those of its sender
  raw_batch_unchecked,            // bytes that were damaged on their way are stored
  raw_sequence_not_widened,       // a new epoch's first batch is taken for an old one
  completion_before_durability,   // a completion is called when the append is staged
  wakeup_lost,                    // what came between a reader's look and its subscription
  waiting_blocks_lane,        // of a source without order, a message that waits holds others back
  old_session_acknowledges,   // an ack of a lost channel means another message of the next one
  producer_id_per_partition,  // a name has another id in each partition of its topic
  charged_without_proof,      // a message is parked for what every message fails with
  older_store_accepted,       // owners go on in a store that was restored from an older copy
  added_partition_ignored,    // what another process took first does not hold the horizon back
  count_
};

#ifdef ONCE_MUTANTS
inline Mutant active_mutant = Mutant::none;
inline bool mutant(Mutant which) { return active_mutant == which; }
#else
constexpr bool mutant(Mutant) { return false; }
#endif

}  // namespace once
