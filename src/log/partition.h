// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/log.h>
#include <once/message.h>
#include <once/result.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "log/bytes.h"
#include "log/frame.h"
#include "log/producer_table.h"
#include "log/raw_batch.h"
#include "log/reader.h"
#include "log/record_batch.h"
#include "log/recovery.h"
#include "log/superblock.h"
#include "log/verdict.h"

namespace once::log {

struct PartitionOptions {
  std::int64_t segment_bytes_max = 64 << 20;
  std::int64_t retention_ms = -1;     // -1: keep for ever
  std::int64_t retention_bytes = -1;  // -1: keep all
  GapPolicy gaps = GapPolicy::refuse;
  // Of batches that wait for their predecessors (GapPolicy::hold); beyond it they are refused.
  std::size_t hold_count_max = 1024;
  std::size_t hold_bytes_max = 64 << 20;
  bool must_exist = false;  // it was made before: that it is missing is damage
  // Draws the ids of logs and producers. Empty: the machine's source of secrets.
  std::function<std::uint64_t()> random;
};

// What is appended at once, in order. Refers to what the caller has.
struct Append {
  Stamp stamp = {};  // of the first message; a record batch brings its own
  std::span<const Message> messages = {};
  const RawBatch* raw = nullptr;  // instead of messages

  std::uint32_t count() const {
    return raw != nullptr ? raw->header.count : static_cast<std::uint32_t>(messages.size());
  }
};

// What `stage` gives for `outcome`. A plain value; it may be dropped.
struct Ticket {
  std::uint64_t group = 0;  // durable when this group is; 0: was durable before
  std::uint64_t held = 0;   // not 0: waits for its predecessors under this number
  Verdict verdict;          // true once it is durable
};

// Which message is the last durable one of a producer, and where it is, if that is remembered.
struct LastPlace {
  std::uint64_t producer = 0;
  std::uint64_t sequence = 0;
  std::optional<std::int64_t> offset;
};

// Reads it; nothing when retention has deleted it.
[[nodiscard]] Result<std::optional<Message>> read_last(const LastPlace& last, Reader& reader,
                                                       const End& durable);

// One partition of a topic: an append-only log of messages that knows its producers.
//
// It owns no thread and does nothing on its own, so a simulator can drive it from one thread:
// `stage` as often as wanted, `sync` once for all of them, `outcome` for each. Nothing is true
// before `sync` has returned: a crash, a full disk or a failed sync takes back what was staged.
// One owner at a time; used by one thread, except that `take`, `flush` and `land` let a wrapper
// stage the next group while one is being written (see GroupCommit).
//
// After a crash, `open` finds every message whose outcome was told, and perhaps some more.
class Partition {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Partition>> open(Files& files, Clock& clock,
                                                               const std::string& directory,
                                                               const PartitionOptions& options);

  // Checks the messages against everything appended or staged and puts the new ones into the
  // pending group. No disk access. Errors: "gap" (retry), "fenced", "unknown", "too_old",
  // "poisoned" (stop), "too_large" (park), "backlog" (retry after a sync); "mixed" (park) for a
  // compressed record batch of which only some messages are new.
  [[nodiscard]] Result<Ticket> stage(Append append);
  [[nodiscard]] Result<Ticket> stage(const Stamp& stamp, std::span<const Message> messages) {
    return stage(Append{.stamp = stamp, .messages = messages});
  }
  [[nodiscard]] Result<Ticket> stage(const RawBatch& batch) { return stage(Append{.raw = &batch}); }

  // The same for the entry of a producer; the stamp counts once the ticket's group is durable.
  // Without a name it is a guest: known while this object lives, and nothing of it is kept.
  // `wanted` as in ProducerTable::next_entry.
  [[nodiscard]] Result<Ticket> stage_entry(std::string_view name, const Identity& wanted = {});

  // Writes the pending group: one write, one sync. "full" (retry) means that nothing of it
  // happened; any other error poisons the partition until it is opened again.
  [[nodiscard]] Status sync();

  // What became of a ticket; "pending" (retry) while that is not known. To be asked for each
  // ticket of a batch that was held, until it is known or given up. May read the log.
  [[nodiscard]] Result<Receipt> outcome(const Ticket& ticket);

  // The same for each message and without reading: places of originals that are not remembered are
  // left open, to be looked up with another reader and then confirmed here.
  [[nodiscard]] Result<Verdict> verdict(const Ticket& ticket);
  // An original that was found keeps its place for good. One that was not found must have been
  // deleted by retention, perhaps while it was looked for; anything else is "corrupt".
  [[nodiscard]] Status confirm(const Verdict& verdict) const;

  // stage_entry, sync, outcome.
  [[nodiscard]] Result<Stamp> enter(std::string_view name);

  // Durable messages from `offset` on; none at the end. "gone" when retention deleted them.
  [[nodiscard]] Result<ReadResult> read(std::int64_t offset, std::size_t bytes_max);
  [[nodiscard]] Result<std::int64_t> offset_at(std::int64_t time_ms);
  // Durable record batches as they are on disk; see Reader::locate.
  [[nodiscard]] Result<StoredBatches> locate(std::int64_t offset, std::size_t bytes_max);

  // A batch that was held too long is given up: its outcome is "gap". False: it was not held.
  bool give_up(const Ticket& ticket);

  // Deletes whole old segments beyond the limits. Also done after every roll.
  [[nodiscard]] Status retain();

  // Gives reserved space back and writes the watermark. Without it the log is as after a crash.
  [[nodiscard]] Status close();

  std::int64_t first_offset() const { return superblock_.first_offset; }
  std::int64_t end_offset() const { return durable_.offset; }  // durable
  bool is_poisoned() const { return poison_.has_value(); }
  Error poisoned(Remedy remedy) const;
  // The answer for a ticket that was given up.
  Error too_late(const Ticket& ticket) const;
  // Whether `outcome` would answer something else than "pending".
  bool is_settled(const Ticket& ticket) const;
  bool has_pending() const { return !pending_.parts.empty() && !poison_; }
  PartitionInfo info() const;
  std::uint64_t log_id() const { return superblock_.log_id; }
  // What a reader may read; for readers of `make_reader`, which need no lock.
  const End& durable() const { return durable_; }
  std::unique_ptr<Reader> make_reader() const;
  // The sequence behind the largest durable one of this producer; 0: it is not known.
  std::uint64_t next_sequence(std::string_view producer) const {
    return table_.next_sequence(producer);
  }
  // Who entered under a name, durable or staged; id 0: nobody did.
  Identity identity_of(std::string_view producer) const { return staged_.identity_of(producer); }
  // Whether a producer has this id, with a name or without.
  bool knows(std::uint64_t producer) const {
    return staged_.knows(producer) || staged_guests_.knows(producer);
  }
  const ProducerTable& durable_producers() const { return table_; }
  // The last durable message of this producer; nothing when there is none, or it was deleted.
  [[nodiscard]] Result<std::optional<Message>> last_message(std::string_view producer);
  // The same in two steps, the second of which needs no lock.
  std::optional<LastPlace> last_place(std::string_view producer) const;
  // Producers that were last seen before this time may have been forgotten; 0: none was.
  std::int64_t producer_horizon_ms() const { return table_.horizon_ms(); }

  // The parts of `sync`. `take` is false when there is nothing to write or a group is on its way.
  // `flush` may run without the wrapper's lock; everything else needs it.
  bool take();
  [[nodiscard]] Status flush();
  void land(const Status& flushed);

 private:
  // A frame of a group, not yet sealed.
  struct Part {
    FrameHeader header;
    Stamp sender;           // as in the header, or a guest, which the header does not name
    std::size_t begin = 0;  // in the group's bytes
    std::size_t end = 0;
    BatchWriter batch;    // only for messages
    bool is_raw = false;  // a record batch as it came, with its own checksum
  };
  struct Group {
    std::uint64_t number = 0;
    Buffer bytes;
    std::vector<Part> parts;
    bool open = false;     // the last part is data and takes more records
    bool refused = false;  // nothing of it was written
    // The producers with which a new segment begins, when the group needs one.
    std::optional<ProducerTable> next_table;
  };
  // An append that waits for its predecessors, with a copy of its content.
  struct Held {
    Held(const Append& append, std::size_t size);
    Append append();  // valid until this is moved
    void drop_content();

    Stamp stamp;
    std::uint32_t count;
    std::vector<Message> messages;
    std::string raw_bytes = {};
    std::optional<RawBatch> raw = std::nullopt;
    std::size_t bytes;
    std::uint32_t tickets = 1;  // how many still ask for its outcome
    std::optional<Result<Ticket>> settled = std::nullopt;
  };

  Partition(Files& files, Clock& clock, std::string directory, PartitionOptions options,
            Recovered recovered, std::unique_ptr<Watermark> watermark);

  Result<Verdict> verdict_of_held(const Ticket& ticket);
  ProducerTable& staged_table(std::uint64_t producer);
  Stamp stamp_of(const RawBatch& batch);
  Result<Ticket> stage_guest();
  Result<Ticket> stage_checked(const Append& append);
  Result<Ticket> stage_mixed(const Append& append, const Check& check);
  tl::unexpected<Error> refusal(const Stamp& stamp, const Check& check) const;
  Ticket new_ticket(const Append& append) const;
  Ticket stage_duplicate(const Stamp& stamp, std::uint32_t count);
  void add_originals(Verdict& verdict, Interval sequences);
  void stage_fresh(const Append& append, std::int64_t now_ms);
  void stage_raw(const Stamp& stamp, const RawBatch& batch);
  Part& begin_part(FrameKind kind, const Stamp& sender);
  void end_part(Part& part);
  Part& open_part(const Stamp& stamp, std::int64_t time_ms);
  void close_part();
  Result<std::size_t> check_size(const Append& append) const;
  Result<Ticket> hold(const Append& append, std::size_t bytes, Error gap);
  void release_held(std::uint64_t producer);
  void take_back(const Error& error);
  bool needs_segment() const;
  void prepare_segment();
  Status make_room(std::int64_t bytes);
  Status roll(std::int64_t bytes);
  Status write_group();
  Status check_in_place();
  Status sync_tail();
  std::uint64_t last_group() const;

  Files& files_;
  Clock& clock_;
  const std::string directory_;
  const PartitionOptions options_;

  // What is staged, in front of what is durable. Guests have a table of their own, because the
  // other one is what snapshots are made of.
  ProducerTable staged_;
  ProducerTable staged_guests_;
  std::int64_t next_offset_;
  Group pending_;
  std::map<std::uint64_t, Held> held_;
  std::size_t held_bytes_ = 0;
  std::uint64_t held_next_ = 1;

  // What is durable. Changed by `land`.
  ProducerTable table_;
  ProducerTable guests_;
  std::deque<std::uint64_t> guest_ids_;  // oldest first
  End durable_;
  std::uint64_t landed_group_ = 0;
  std::deque<std::pair<std::uint64_t, Error>> refused_groups_;
  std::uint64_t forgotten_group_ = 0;  // up to here it is no longer known what was refused
  std::optional<Error> poison_;

  // What is being written. Belongs to `flush` between `take` and `land`.
  bool flying_ = false;
  Group flight_;
  Tail tail_;
  std::vector<SealedSegment> sealed_;
  Superblock superblock_;
  std::unique_ptr<Watermark> watermark_;

  Reader reader_;
};

}  // namespace once::log
