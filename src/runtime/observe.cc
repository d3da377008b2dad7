// SPDX-License-Identifier: Apache-2.0
#include <once/observe.h>
#include <once/outbox.h>

#include <algorithm>
#include <array>

#include "runtime/figures.h"

namespace once {

const char* name_of(EventKind kind) {
  switch (kind) {
    case EventKind::store_away: return "store_away";
    case EventKind::store_back: return "store_back";
    case EventKind::source_away: return "source_away";
    case EventKind::source_back: return "source_back";
    case EventKind::destination_away: return "destination_away";
    case EventKind::destination_back: return "destination_back";
    case EventKind::claim_awaited: return "claim_awaited";
    case EventKind::claim_free: return "claim_free";
    case EventKind::statement_failing: return "statement_failing";
    case EventKind::statement_passes: return "statement_passes";
    case EventKind::partitions_assigned: return "partitions_assigned";
    case EventKind::partitions_revoked: return "partitions_revoked";
    case EventKind::partitions_awaited: return "partitions_awaited";
    case EventKind::message_parked: return "message_parked";
    case EventKind::message_retried: return "message_retried";
    case EventKind::fenced: return "fenced";
    case EventKind::standing_by: return "standing_by";
    case EventKind::took_over: return "took_over";
    case EventKind::clocks_differ: return "clocks_differ";
  }
  return "?";
}

namespace {

// What is known of the topic is not counted by lanes.
constexpr std::array<Figure<Statistics>, 3> of_the_topic{{
    {.name = "lag",
     .unit = "messages",
     .help = "In the topic and not handled yet; -1: not known",
     .grows = false,
     .read = [](const Statistics& now) { return now.lag; }},
    {.name = "lag_partitions",
     .unit = "partitions",
     .help = "Whose lag is known",
     .grows = false,
     .read = [](const Statistics& now) { return static_cast<std::int64_t>(now.lag_partitions); }},
    {.name = "partitions",
     .unit = "partitions",
     .help = "Of the topic; 0: not known",
     .grows = false,
     .read = [](const Statistics& now) { return static_cast<std::int64_t>(now.partitions); }},
}};

template <class Of>
std::int64_t read_count(const Statistics& now) {
  return static_cast<std::int64_t>(*Of{}(now));
}

using Figures = std::array<Figure<Statistics>, counts::count + of_the_topic.size()>;

Figures make_figures() {
  Figures made;
  auto next = made.begin();
  for_each_count([&]<class Of>(const Count<Of>& count) {
    *next++ = {count.name, count.unit, count.help, count.grows, count.shown, read_count<Of>};
  });
  std::copy(of_the_topic.begin(), of_the_topic.end(), next);
  return made;
}

constexpr std::array<Figure<RelayState>, 2> of_relays{{
    {.name = "emitted",
     .unit = "messages",
     .help = "Sent from the outbox to their destinations",
     .shown = Figure<RelayState>::Shown::in_summary,
     .read = [](const RelayState& state) { return static_cast<std::int64_t>(state.sent); }},
    {.name = "emits_parked",
     .unit = "messages",
     .help = "Of the outbox, which their destination can never accept",
     .read = [](const RelayState& state) { return static_cast<std::int64_t>(state.parked); }},
}};

}  // namespace

std::span<const Figure<Statistics>> pipeline_figures() {
  static const Figures figures = make_figures();
  return figures;
}
std::span<const Figure<RelayState>> relay_figures() { return of_relays; }

}  // namespace once
