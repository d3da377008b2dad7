// SPDX-License-Identifier: Apache-2.0
#include "operate/check.h"

#include <fmt/format.h>
#include <once/clock.h>
#include <once/records.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "audit/same_topic.h"
#include "base/url.h"
#include "model/gone.h"
#include "model/hint.h"
#include "model/ledger.h"
#include "open/look.h"
#include "open/topics.h"
#include "operate/outbox.h"
#include "operate/progress.h"
#include "runtime/witness.h"

namespace once::operate {
namespace {

// What the job writes where it reads comes again: each message makes another, without end.
Status check_loop(const Job& job, const Destination& destination) {
  if (job.source_url.empty()) return {};
  const std::string topic = ONCE_TRY(audit::topic_of_both(job.source_url, destination.url));
  if (topic.empty()) return {};
  return fail(Remedy::stop, "config",
              fmt::format("{}: {} is the topic {}, which is read here: what is written there would "
                          "come again without end; name another topic",
                          destination.origin, shown_url(destination.url), topic));
}

Status at_destination(const Destination& destination, const Status& found) {
  if (found) return {};
  Error error = found.error();
  error.text = fmt::format("{}: {}", destination.origin, error.text);
  return fail(std::move(error));
}

Status check_destination_of(const Destination& destination) {
  const auto topic = describe_topic_at(destination.url);
  return at_destination(destination, topic ? Status() : fail(topic.error()));
}

// A topic that is missing at the start is taken for a slip, unless messages wait for it already: it
// was deleted, and a person can still make it again while the rest of the job goes on.
bool can_wait_for(const Job& job, const Destination& destination, const Error& error,
                  const std::vector<std::string>& waiting) {
  const bool has_other = std::any_of(
      job.destinations.begin(), job.destinations.end(),
      [&](const Destination& one) { return one.name != job.destinations.front().name; });
  return error.tag == "missing" && (job.has_effects || has_other) &&
         std::find(waiting.begin(), waiting.end(), destination.name) != waiting.end();
}

// The destinations for which messages wait.
Result<std::vector<std::string>> waiting_in(Store& store) {
  if (store.outbox() == nullptr) return std::vector<std::string>();
  return store.outbox()->destinations();
}

// Renaming a destination would leave behind what still waits for it.
Status check_left_behind(const Job& job, const std::vector<std::string>& all_waiting) {
  const std::string prefix = fmt::format("run/{}/", job.options.scope);
  for (const std::string& waiting : all_waiting) {
    if (!waiting.starts_with(prefix)) continue;
    const bool known = std::any_of(job.destinations.begin(), job.destinations.end(),
                                   [&](const Destination& one) { return one.name == waiting; });
    if (!known)
      return fail(
          Remedy::stop, "config",
          fmt::format("{}: messages wait in the outbox for \"{}\", which is no longer one of its "
                      "destinations; put that [[emit]] or [park] back until they are sent, or give "
                      "them up: {}",
                      job.name, waiting.substr(prefix.size()),
                      hint({"outbox", "drop", "--pending", "--destination", waiting, "--reason",
                            "the pipeline emits it no more"})));
  }
  return {};
}

Status check_position(const PartitionRecord& record, const TopicExtents& extents) {
  const auto extent = extents.find(record.partition);
  const std::int64_t offset = record.position.offset;
  if (extent == extents.end() || offset < 0) return {};
  const std::int64_t first = extent->second.first_offset;
  const std::int64_t end = extent->second.end_offset;
  if (offset < first) return fail(forgotten_error(record.partition, offset, first));
  if (offset > end) return fail(ends_before_error(record.partition, end, offset));
  return {};
}

// Reads the last handled message of each partition again, as a start does: whether the topic is
// still the one that was read before. The source is one of somebody who only looks, and replayable.
class WitnessReading {
 public:
  WitnessReading(Source& source, const std::string& scope, const ScopeRecord& record)
      : source_(source), scope_(scope) {
    const SourceTraits traits = source.traits();
    for (const PartitionRecord& partition : record.partitions)
      if (partition.position.witness.offset >= 0)
        open_.emplace(partition.partition,
                      WitnessCheck(partition.position, traits, partition.partition));
  }

  Status run() {
    constexpr std::int64_t wait_ms = 200;
    const std::int64_t give_up_ns = system_clock().ticks_ns() + patience_ns;
    while (!open_.empty() && system_clock().ticks_ns() < give_up_ns) {
      Batch batch = ONCE_TRY(source_.poll(1, wait_ms));
      if (batch.event == Batch::Event::assigned) ONCE_TRY(begin(batch.partition));
      if (batch.event == Batch::Event::messages) ONCE_TRY(check(batch));
      const bool at_end = batch.event == Batch::Event::end || batch.drained;
      if (at_end && batch.deliveries.empty()) ONCE_TRY(check_ends());
    }
    return {};
  }

  // The partitions of which no message came in time.
  std::vector<std::string> unread() const {
    std::vector<std::string> names;
    for (const auto& [name, check] : open_) names.push_back(name);
    return names;
  }

 private:
  static constexpr std::int64_t patience_ns = 10'000'000'000;

  Status begin(std::string_view partition) {
    const auto found = open_.find(partition);
    if (found == open_.end()) return source_.replay()->seek(partition, -1);
    const Status sought = found->second.seek(*source_.replay(), partition);
    if (!sought) return sought;
    if (!found->second.is_pending()) open_.erase(found);
    return {};
  }
  Status check(Batch& batch) {
    const auto found = open_.find(batch.partition);
    if (found == open_.end()) return {};
    ONCE_TRY(found->second.check(scope_, batch));
    if (!found->second.is_pending()) open_.erase(found);
    return {};
  }

  Status check_ends() {
    for (auto check = open_.begin(); check != open_.end();) {
      const bool is_known =
          check->second.is_pending() &&
          ONCE_TRY(check->second.check_end(scope_, *source_.replay(), check->first));
      check = is_known ? open_.erase(check) : std::next(check);
    }
    return {};
  }

  Source& source_;
  const std::string& scope_;
  std::map<std::string, WitnessCheck, std::less<>> open_;
};

// Damage of the topic is found here, before anything was read of it, too.
Result<TopicExtents> extents_of_source(const Job& job) {
  if (job.source_url.empty() || !job.source.traits().replayable) return TopicExtents();
  return topic_extents(job.source_url);
}

Status check_positions(const Job& job, const ScopeRecord& scope, const TopicExtents& extents,
                       Findings& findings) {
  if (scope.partitions.empty() || job.source_url.empty()) return {};
  const std::string identity = job.source.traits().identity;
  for (const PartitionRecord& record : scope.partitions) {
    if (is_other_source(record.source_identity, identity))
      return fail(other_source_error(job.options.scope, record.partition, record.position.offset,
                                     record.source_identity, identity));
    ONCE_TRY(check_position(record, extents));
  }
  const auto source = ONCE_TRY(open_source_to_look(job.source_url));
  if (source->replay() == nullptr) return {};
  WitnessReading reading(*source, job.options.scope, scope);
  ONCE_TRY(reading.run());
  for (const std::string& partition : reading.unread())
    findings.unchecked.push_back(
        fmt::format("whether {} is still the topic that was read before was not checked: its last "
                    "handled message was not delivered in time",
                    partition));
  return {};
}

Status find_troubles(const Job& job, Findings& findings) {
  for (const Destination& destination : job.destinations) {
    const std::string trouble = ONCE_TRY(trouble_at(job.store, destination.name));
    if (!trouble.empty())
      findings.warnings.push_back(fmt::format("{}: nothing is sent to {}: {}", destination.origin,
                                              shown_url(destination.url), trouble));
  }
  return {};
}

Result<Findings> find(const Job& job) {
  Findings findings;
  ONCE_TRY(check_start(job));
  for (const Destination& destination : job.destinations) {
    ONCE_TRY(check_destination_of(destination));
    ONCE_TRY(at_destination(destination, check_sink_at(destination.url)));
  }
  const TopicExtents extents = ONCE_TRY(extents_of_source(job));
  if (job.store.records() == nullptr) return findings;
  const ScopeRecord scope = ONCE_TRY(job.store.records()->describe(job.options.scope));
  ONCE_TRY(check_positions(job, scope, extents, findings));
  ONCE_TRY(find_troubles(job, findings));
  return findings;
}

}  // namespace

Status check_start(const Job& job) {
  const std::vector<std::string> waiting = ONCE_TRY(waiting_in(job.store));
  ONCE_TRY(check_left_behind(job, waiting));
  for (const Destination& destination : job.destinations) {
    ONCE_TRY(check_loop(job, destination));
    const Status there = check_destination_of(destination);
    if (!there && !can_wait_for(job, destination, there.error(), waiting)) return there;
  }
  return {};
}

Result<Findings> check_job(const Job& job) {
  auto findings = find(job);
  if (!findings) return fail(with_complete_hints(with_way_on(std::move(findings).error()), job));
  for (std::string& warning : findings->warnings)
    warning = once::with_complete_hints(warning, hint_place_of(job));
  return findings;
}

}  // namespace once::operate
