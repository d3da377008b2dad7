// SPDX-License-Identifier: Apache-2.0
#include "simulation/relay_world.h"

#include <fmt/format.h>
#include <once/outbox.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "simulation/context.h"
#include "simulation/relay_process.h"
#include "store/memory/memory.h"
#include "testing/memory_sink.h"
#include "testing/random.h"
#include "testing/sim_clock.h"

namespace once::simulation {
namespace {

constexpr std::string_view destination = "points";
constexpr std::uint32_t partition_count = 2;
constexpr int calm_rounds_max = 400;

// What a message is owed.
struct Owed {
  std::size_t store = 0;
  std::uint64_t begun = 0;
  std::uint64_t committed = 0;  // 0: not
  bool poison = false;
  bool undone = false;   // its store went back to before its commit
  bool repeats = false;  // its store went back to where it was pending: a restart sends it again
  bool gone = false;     // sent to a topic that was deleted since
  bool moved = false;    // see `go_back`: nothing can be said about it
};

class World {
 public:
  explicit World(const RelayWorldOptions& options)
      : options_(options),
        random_(options.seed),
        recognises_(random_.chance(300) ? Recognises::none : Recognises::by_stamp),
        sink_(partition_count, recognises_) {
    if (recognises_ == Recognises::none) reached("a destination that recognises nothing");
    for (std::size_t i = 0; i < outlets_.size(); ++i) {
      outlets_[i].store = std::make_unique<MemoryStore>(clock_, fmt::format("store-{}", i));
      for (Process& process : outlets_[i].processes) start(outlets_[i], process);
    }
    sink_.set_faults([this] { return fault("append fails", Remedy::retry); },
                     [this] { return receipt_lost(); });
    sink_.refuse([](const Message& message) -> Status {
      if (message.body == "poison") return fail(Remedy::park, "too_large", "too large");
      return {};
    });
  }

  RelayWorldReport run() {
    for (std::size_t i = 0; i < options_.events_max && report_.violations.empty(); ++i) event();
    if (report_.violations.empty()) calm_down();
    if (report_.violations.empty()) check();
    return std::move(report_);
  }

 private:
  struct Process {
    std::unique_ptr<ProcessStore> store;
    std::unique_ptr<Relay> relay;
    std::uint64_t number = 0;  // of its life
    bool frozen = false;
  };
  struct Writer {
    std::unique_ptr<Transaction> transaction;
    std::vector<std::string> ids;
  };
  struct Outlet {
    std::unique_ptr<MemoryStore> store;
    std::vector<Process> processes{3};
    std::vector<Writer> writers;
    std::optional<MemoryState> backup;
    std::uint64_t backup_at = 0;
    bool excused = false;  // it may find that it has diverged
    int restarts = 0;
    std::int64_t name_max = -1;  // the producer's last name; one that went back uses names again
  };

  template <class... Arguments>
  void note(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    report_.trace.push_back(fmt::format(text, std::forward<Arguments>(arguments)...));
  }
  void reached(const char* state) {
    ++report_.reached[state];
    note("reached: {}", state);
  }
  void violate(std::string text) { report_.violations.push_back(std::move(text)); }
  std::size_t number_of(const Outlet& outlet) const {
    return static_cast<std::size_t>(&outlet - outlets_.data());
  }

  Status fault(const char* what, Remedy remedy) {
    if (calm_ || !random_.chance(60)) return {};
    reached(what);
    return fail(remedy, "lost", what);
  }

  // Where nothing is recognised, who sent each message last, and whether the answer was lost: a
  // copy needs a reason.
  struct SentBy {
    std::uint64_t process = 0;
    std::uint64_t fence = 0;
    bool is_unknown = false;
  };

  // After each append. The destination has the messages; the relay may not know it.
  Status receipt_lost() {
    const Status lost = fault("receipt lost", Remedy::recheck);
    for (std::uint32_t p = 0; p < partition_count; ++p)
      for (; counted_[p] < sink_.messages(p).size(); ++counted_[p])
        note_sent(sink_.messages(p)[counted_[p]].id, !lost);
    return lost;
  }

  void note_sent(const std::string& id, bool is_unknown) {
    const Outlet& outlet = outlets_[owed_.at(id).store];
    const std::uint64_t fence = outlet.store->position(relay_scope, destination)->fence;
    const auto [before, first] = sent_by_.try_emplace(id, SentBy{stepping_, fence, is_unknown});
    if (first) return;
    const Owed& owed = owed_.at(id);
    if (recognises_ == Recognises::none && !owed.repeats) {
      reached("a copy at a destination that recognises nothing");
      const SentBy& last = before->second;
      if (last.process == stepping_ && last.fence == fence && !last.is_unknown)
        violate(fmt::format("{} was sent twice by a process that knew it was there", id));
    }
    before->second = {stepping_, fence, is_unknown};
  }

  // The relay goes first: it gives its role back to the store.
  void end(Process& process) {
    process.relay.reset();
    process.store.reset();
  }

  void start(Outlet& outlet, Process& process) {
    end(process);
    process.store = std::make_unique<ProcessStore>(
        *outlet.store, [this](const char* what, Remedy remedy) { return fault(what, remedy); });
    process.frozen = false;
    RelayOptions options;
    options.name = "relay";
    options.batch_count_max = 1 + random_.below(8);
    options.owner = fmt::format("process {}", ++started_);
    process.number = started_;
    auto made = Relay::make(
        *process.store, [this](std::string_view) { return testing::shared(sink_); }, options,
        clock_);
    process.relay = std::move(*made);
  }

  void event() {
    Outlet& outlet = outlets_[random_.below(outlets_.size())];
    const std::size_t die = random_.below(1000);
    if (die < 200) return begin(outlet);
    if (die < 400) return commit(outlet);
    if (die < 480) return clock_.step(static_cast<std::int64_t>(random_.below(4000)));
    if (die < 500) return kill(outlet, outlet.processes[random_.below(3)]);
    if (die < 520) return freeze(outlet.processes[random_.below(3)]);
    if (die < 540) return back_up(outlet);
    if (die < 548) return go_back(outlet);
    if (die < 552) return make_anew();
    if (die < 554) return clone();
    if (die < 562) return jump_clock();
    step(outlet, outlet.processes[random_.below(3)]);
  }

  // --- Those who emit

  void begin(Outlet& outlet) {
    if (outlet.writers.size() > 4) return;
    Writer writer{std::move(*outlet.store->begin("shop")), {}};
    const std::size_t count = 1 + random_.below(4);
    for (std::size_t i = 0; i < count; ++i) {
      const bool poison = random_.chance(50);
      const std::string id = fmt::format("m{}", owed_.size());
      const Message message{.id = id,
                            .key = fmt::format("k{}", random_.below(4)),
                            .body = poison ? "poison" : "good",
                            .headers = {},
                            .timestamp_ms = 1};
      if (!writer.transaction->enqueue(destination, message)) return;
      owed_[id] = {.store = number_of(outlet), .begun = ++now_, .poison = poison};
      writer.ids.push_back(id);
    }
    outlet.writers.push_back(std::move(writer));
  }

  // The one that began last or the one that began first.
  void commit(Outlet& outlet) {
    if (outlet.writers.empty()) return;
    const std::size_t index = random_.below(outlet.writers.size());
    Writer writer = std::move(outlet.writers[index]);
    outlet.writers.erase(outlet.writers.begin() + static_cast<std::ptrdiff_t>(index));
    if (random_.chance(100)) return;  // rolled back
    if (!writer.transaction->commit()) return;
    if (index + 1 < outlet.writers.size()) reached("committed late");
    ++now_;
    for (const std::string& id : writer.ids) owed_[id].committed = now_;
    note("store {} commits {}", number_of(outlet), fmt::join(writer.ids, ", "));
  }

  // --- Those who send

  void step(Outlet& outlet, Process& process) {
    if (process.frozen) return;
    stepping_ = process.number;
    try {
      const DeathAtPoint death(!calm_ && random_.chance(60) ? 1 + random_.below(4) : 0);
      answered(outlet, process, process.relay->step());
    } catch (const SimulatedDeath&) {
      reached("died at a point");
      kill(outlet, process);
    }
  }

  void answered(Outlet& outlet, Process& process, const Result<std::size_t>& left) {
    if (left && !process.relay->state().sender.empty()) reached("stood by");
    note("store {}: process {}: {}", number_of(outlet), &process - outlet.processes.data(),
         left ? fmt::format("{} left", *left) : left.error().tag);
    if (left || left.error().remedy == Remedy::retry || left.error().remedy == Remedy::recheck)
      return;
    note("store {}: {}", number_of(outlet), left.error().text);
    if (left.error().tag != "diverged")
      return violate("a relay ends: " + left.error().tag + ": " + left.error().text);
    reached("diverged");
    if (!outlet.excused) return violate("a relay says without a reason: " + left.error().text);
    if (calm_ || random_.chance(300)) restart(outlet);
  }

  void restart(Outlet& outlet) {
    Store& store = *outlet.store;
    if (!store.repairs()->correct(relay_scope, RestartDestination{std::string(destination)}, "x"))
      return;
    const std::int64_t name = store.position(relay_scope, destination)->offset;
    note("store {} is restarted: {}", number_of(outlet), name);
    if (cloned_)  // some may have been sent before the other store sent under the same sequences
      for (const std::string& id : pending_in(outlet.store->snapshot()))
        owed_.at(id).repeats = true;
    outlet.excused = cloned_ || name <= outlet.name_max;
    outlet.name_max = std::max(outlet.name_max, name);
    ++outlet.restarts;
  }

  void kill(Outlet& outlet, Process& process) {
    process.store->die();
    start(outlet, process);
  }

  // Somebody sets the store's clock, by which leases end: too early, and two processes believe that
  // the role is theirs; or late, and nobody has it for a while.
  void jump_clock() {
    const auto jump_ms = static_cast<std::int64_t>(random_.below(120'000)) - 60'000;
    clock_.jump(jump_ms);
    reached(jump_ms < 0 ? "the clock jumps back" : "the clock jumps ahead");
  }

  void freeze(Process& process) {
    process.frozen = !process.frozen;
    if (!process.frozen) reached("awake again");
  }

  // --- What goes back

  void back_up(Outlet& outlet) {
    outlet.backup = outlet.store->snapshot();
    outlet.backup_at = now_;
    note("store {} is backed up", number_of(outlet));
  }

  static std::set<std::string> pending_in(const MemoryState& state) {
    std::set<std::string> ids;
    const auto rows = state.outbox.find(destination);
    if (rows == state.outbox.end()) return ids;
    for (const auto& [number, row] : rows->second) ids.insert(row.message.id);
    return ids;
  }

  // A store that goes back into the moment between the routes of a row that can never be sent and
  // its parking has, for the rows behind that one, sequences that they no longer had when they were
  // sent. Which of them are there cannot be known.
  void forget_moved(const MemoryState& backup) {
    const auto rows = backup.outbox.find(destination);
    if (rows == backup.outbox.end()) return;
    for (const auto& [number, poison] : rows->second) {
      if (!poison.route || !owed_.at(poison.message.id).poison) continue;
      reached("went back to before a row was parked");
      for (const auto& [other, row] : rows->second)
        if (row.route && row.route->partition == poison.route->partition &&
            row.route->sequence >= poison.route->sequence)
          owed_.at(row.message.id).moved = true;
    }
  }

  void go_back(Outlet& outlet) {
    if (!outlet.backup) return;
    reached("a store went back");
    note("store {}", number_of(outlet));
    forget_moved(*outlet.backup);
    outlet.store->restore(*outlet.backup);
    outlet.excused = true;
    for (auto& [id, owed] : owed_)
      if (owed.store == number_of(outlet) && owed.committed > outlet.backup_at) owed.undone = true;
    for (const std::string& id : pending_in(*outlet.backup)) {
      owed_.at(id).repeats = true;
      owed_.at(id).gone = false;
    }
  }

  // The second store is replaced by a copy of the first, and both go on: two relays with one name.
  void clone() {
    if (cloned_) return;
    cloned_ = true;
    reached("a store was cloned");
    Outlet& copy = outlets_[1];
    for (Process& process : copy.processes) end(process);
    copy.writers.clear();
    copy.backup.reset();
    for (auto& [id, owed] : owed_)
      if (owed.store == 1) owed.moved = true;
    const MemoryState state = outlets_[0].store->snapshot();
    copy.store = std::make_unique<MemoryStore>(clock_, "store-0");
    copy.store->restore(state);
    for (Process& process : copy.processes) start(copy, process);
    for (const std::string& id : pending_in(state)) owed_.at(id).repeats = true;
    for (Outlet& outlet : outlets_) outlet.excused = true;
  }

  void make_anew() {
    reached("the topic was made anew");
    std::set<std::string> pending;
    for (Outlet& outlet : outlets_) {
      outlet.excused = true;
      pending.merge(pending_in(outlet.store->snapshot()));
    }
    for (auto& [id, owed] : owed_) {
      if (owed.committed != 0 && !pending.contains(id)) owed.gone = true;
      // Where nothing is recognised, a relay that knows that it has sent a row only removes it,
      // even if the row comes back with its store.
      if (recognises_ == Recognises::none && sent_by_.contains(id)) owed.moved = true;
    }
    sink_.make_anew();
    counted_.fill(0);
    sent_by_.clear();
  }

  // --- The end

  bool all_left() {
    return std::all_of(outlets_.begin(), outlets_.end(), [](const Outlet& outlet) {
      return static_cast<Store&>(*outlet.store).outbox()->destinations()->empty();
    });
  }

  void calm_down() {
    calm_ = true;
    for (Outlet& outlet : outlets_)
      for (Process& process : outlet.processes) process.frozen = false;
    for (int round = 0; round < calm_rounds_max; ++round) {
      for (Outlet& outlet : outlets_)
        for (Process& process : outlet.processes) step(outlet, process);
      clock_.step(500);
      if (!report_.violations.empty() || all_left()) return;
    }
    violate("liveness: rows are left after the faults have stopped");
  }

  void check() {
    std::map<std::string, int> copies;
    for (std::uint32_t p = 0; p < partition_count; ++p) {
      for (const Message& message : sink_.messages(p)) ++copies[message.id];
      check_order(p);
    }
    for (const auto& [id, owed] : owed_) check(id, owed, copies[id]);
  }

  void check(const std::string& id, const Owed& owed, int copies) {
    const auto expect = [&](int least, int most) {
      if (recognises_ == Recognises::none && most > 0) most = copies;  // see `note_sent`
      if (copies < least || copies > most)
        violate(fmt::format("{} of store {} is there {} times, not {} to {}", id, owed.store,
                            copies, least, most));
    };
    if (owed.moved) return;
    const int restarts =
        cloned_ ? outlets_[0].restarts + outlets_[1].restarts + 1 : outlets_[owed.store].restarts;
    if (owed.poison || owed.committed == 0) {
      expect(0, 0);
      if (owed.committed != 0 && !owed.undone) check_parked(id, owed);
    } else if (owed.undone) {
      expect(0, cloned_ && owed.repeats ? 1 + restarts : 1);
    } else if (owed.gone) {
      expect(0, 0);
    } else {
      expect(1, owed.repeats ? 1 + restarts : 1);
    }
  }

  void check_parked(const std::string& id, const Owed& owed) {
    Store& store = *outlets_[owed.store].store;
    const auto parked = store.records()->parked(outbox_scope, 0, 10'000).value();
    const auto times = std::count_if(parked.begin(), parked.end(), [&](const ParkedRecord& record) {
      return record.message.id == id;
    });
    if (times != 1) violate(fmt::format("{} can never be sent and is parked {} times", id, times));
  }

  // What was committed before another began stands before it.
  void check_order(std::uint32_t partition) {
    std::vector<std::uint64_t> youngest_begun(outlets_.size(), 0);
    std::set<std::string> seen;  // of copies the first one counts
    for (const Message& message : sink_.messages(partition)) {
      const Owed& owed = owed_.at(message.id);
      if (!seen.insert(message.id).second) continue;
      if (owed.repeats || owed.undone || owed.moved) continue;
      std::uint64_t& youngest = youngest_begun[owed.store];
      if (owed.committed < youngest)
        violate(fmt::format("order: {} comes behind one that began after its commit", message.id));
      youngest = std::max(youngest, owed.begun);
    }
  }

  const RelayWorldOptions options_;
  testing::Random random_;
  testing::SimClock clock_;
  const Recognises recognises_;
  testing::MemorySink sink_;
  std::array<std::size_t, partition_count> counted_{};  // of its messages, by partition
  std::map<std::string, SentBy> sent_by_;
  std::uint64_t stepping_ = 0;  // the process whose turn it is
  std::vector<Outlet> outlets_{2};
  std::map<std::string, Owed> owed_;
  std::uint64_t now_ = 0;  // counts what happens
  std::uint64_t started_ = 0;
  bool cloned_ = false;
  bool calm_ = false;
  RelayWorldReport report_;
};

}  // namespace

RelayWorldReport run_relay_world(const RelayWorldOptions& options) { return World(options).run(); }

}  // namespace once::simulation
