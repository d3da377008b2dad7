// SPDX-License-Identifier: Apache-2.0
#include <once/observe.h>
#include <once/outbox.h>

#include <array>

namespace once {

const char* name_of(EventKind kind) {
  switch (kind) {
    case EventKind::store_away: return "store_away";
    case EventKind::store_back: return "store_back";
    case EventKind::source_away: return "source_away";
    case EventKind::source_back: return "source_back";
    case EventKind::destination_away: return "destination_away";
    case EventKind::destination_back: return "destination_back";
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

using Shown = Figure<Statistics>::Shown;

template <auto member>
std::int64_t read(const Statistics& statistics) {
  return static_cast<std::int64_t>(statistics.*member);
}

constexpr Figure<Statistics> total(std::string_view name, std::string_view unit,
                                   std::string_view help, Shown shown,
                                   std::int64_t (*read)(const Statistics&)) {
  return {name, unit, help, true, shown, read};
}

constexpr Figure<Statistics> present(std::string_view name, std::string_view unit,
                                     std::string_view help,
                                     std::int64_t (*read)(const Statistics&)) {
  return {name, unit, help, false, Shown::in_full, read};
}

constexpr std::array figures{
    total("delivered", "messages", "Taken from the source", Shown::in_full,
          read<&Statistics::delivered>),
    total("applied", "messages", "Whose effect is committed", Shown::in_progress,
          read<&Statistics::applied>),
    total("rejected", "messages", "Refused for good by the handler", Shown::in_summary,
          read<&Statistics::rejected>),
    total("no_effect", "messages", "With nothing to do; their ids stay free", Shown::in_summary,
          read<&Statistics::no_effect>),
    total("parked", "messages", "Set aside with a reason", Shown::in_progress,
          read<&Statistics::parked>),
    total("mismatched", "messages", "Parked: the id was used for other content", Shown::in_summary,
          read<&Statistics::mismatched>),
    total("too_old", "messages", "Parked: born before the ledger's horizon", Shown::in_summary,
          read<&Statistics::too_old>),
    total("ahead", "messages", "Parked: born too far ahead of the store's clock", Shown::in_summary,
          read<&Statistics::ahead>),
    total("duplicates", "messages", "Handled before, as the ledger says", Shown::in_progress,
          read<&Statistics::duplicates>),
    total("skipped", "messages", "Handled before, as the position says", Shown::in_progress,
          read<&Statistics::skipped>),
    total("passed", "messages", "Not wanted, as the file or the options say", Shown::in_summary,
          read<&Statistics::passed>),
    total("retried", "attempts", "Attempts that are made again later", Shown::in_summary,
          read<&Statistics::retried>),
    total("deferred", "attempts", "Put off until later, to wait in the store", Shown::in_summary,
          read<&Statistics::deferred>),
    total("transactions", "transactions", "Committed", Shown::in_full,
          read<&Statistics::transactions>),
    total("rolled_back", "transactions", "Rolled back", Shown::in_full,
          read<&Statistics::rolled_back>),
    total("rechecked", "transactions", "Whose outcome had to be looked up", Shown::in_full,
          read<&Statistics::rechecked>),
    total("forgotten", "ids", "Removed from the ledger behind the horizon", Shown::in_full,
          read<&Statistics::forgotten>),
    present("lag", "messages", "In the topic and not handled yet; -1: not known",
            read<&Statistics::lag>),
    present("lag_partitions", "partitions", "Whose lag is known",
            read<&Statistics::lag_partitions>),
    present("partitions", "partitions", "Of the topic; 0: not known",
            read<&Statistics::partitions>),
    present("batch_count", "messages", "At most in the next transaction",
            read<&Statistics::batch_count>),
};

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

std::span<const Figure<Statistics>> pipeline_figures() { return figures; }
std::span<const Figure<RelayState>> relay_figures() { return of_relays; }

}  // namespace once
