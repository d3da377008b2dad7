// SPDX-License-Identifier: Apache-2.0
#include "operate/set_aside.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "model/hint.h"
#include "model/ledger.h"
#include "model/start_at.h"
#include "operate/failure.h"
#include "operate/message_json.h"
#include "runtime/dead_letter.h"

namespace once::operate {
namespace {

tl::unexpected<Error> not_set_aside(const SetAsideRequest& request, std::string_view why) {
  return fail_usage(fmt::format("offset {} of partition \"{}\" {}; nothing was changed",
                                request.offset, request.partition, why));
}

// The batch that begins with the message.
Result<Batch> batch_at(Source& source, const SetAsideRequest& request) {
  constexpr std::int64_t wait_ms = 200;
  constexpr int empty_polls_max = 50;
  constexpr std::size_t count = 100;
  bool is_known = false;
  for (int empty_polls = 0; empty_polls < empty_polls_max;) {
    Batch batch = ONCE_TRY(source.poll(count, wait_ms));
    if (batch.event == Batch::Event::end) break;
    const bool is_it = batch.partition == request.partition;
    if (batch.event == Batch::Event::assigned) {
      is_known = is_known || is_it;
      ONCE_TRY(start_at(source, batch.partition, is_it ? request.offset : -1));
    }
    if (batch.event != Batch::Event::messages) continue;
    if (is_it && !batch.deliveries.empty()) return batch;
    if (batch.drained) break;
    if (batch.deliveries.empty()) ++empty_polls;
  }
  if (!is_known) return not_set_aside(request, "is not there: the topic has no such partition");
  return not_set_aside(request, "is not there yet");
}

// What the pipeline would do about it without being told.
std::string obstacle_of(const Verdict& verdict, const std::string& id) {
  switch (verdict.kind) {
    case Verdict::Kind::fresh: return {};
    case Verdict::Kind::mismatch:
    case Verdict::Kind::too_old: return "is parked by the pipeline when it comes to it";
    case Verdict::Kind::duplicate: break;
  }
  if (verdict.stored.kind == Outcome::Kind::later)
    return fmt::format(
        "waits in the store: {} lists it, and `once later drop --help` tells how to "
        "give it up",
        hint({"later", "ls"}));
  return fmt::format("has an id that is in the ledger as {}: the pipeline passes it, see {}",
                     name_of(verdict.stored.kind), hint({"ledger", "show", id}));
}

Status check_wanted(const PipelineOptions& options, const Delivery& delivery,
                    const SetAsideRequest& request) {
  if (!options.id || options.semantics != Semantics::effectively_once)
    return not_set_aside(
        request,
        fmt::format("has no id in the ledger: the position alone tells what was handled. "
                    "{} passes it, and it stays in the topic",
                    hint({"position", "set", "--partition", request.partition, "--to",
                          fmt::format("{}", request.offset + 1), "--reason", request.reason})));
  if (delivery.offset != request.offset)
    return not_set_aside(
        request, fmt::format("has no message: the next one is at offset {}", delivery.offset));
  if (!options.wanted) return {};
  const auto wanted = options.wanted(delivery);
  if (wanted && *wanted) return {};
  return not_set_aside(request, wanted ? "is none that the pipeline wants: it passes it"
                                       : "is parked by the pipeline when it comes to it");
}

}  // namespace

Result<SetAside> set_aside(Source& source, Store& store, const PipelineOptions& options,
                           const SetAsideRequest& request) {
  ONCE_TRY(check_reason(request.reason));
  if (source.replay() == nullptr)
    return not_set_aside(request, "cannot be looked at: its source has no positions");
  const Position position = ONCE_TRY(store.position(options.scope, request.partition));
  if (request.offset < position.offset)
    return not_set_aside(request, fmt::format("was handled: the position is {}", position.offset));
  const Batch batch = ONCE_TRY(batch_at(source, request));
  Delivery delivery = batch.deliveries.front();
  ONCE_TRY(check_wanted(options, delivery, request));
  const auto id = options.id->id_of(delivery);
  if (!id) return not_set_aside(request, "has no id: the pipeline parks it when it comes to it");
  const auto born_ms = born_ms_of(options.born, delivery, *id);
  if (!born_ms) return not_set_aside(request, "is parked by the pipeline when it comes to it");
  delivery.id = *id;

  auto transaction = ONCE_TRY(store.begin(options.scope));
  const Entry entry{.id = *id,
                    .fingerprint = fingerprint_of(delivery, options.content),
                    .born_ms = *born_ms,
                    .partition = delivery.partition,
                    .offset = delivery.offset};
  const auto verdicts = ONCE_TRY(transaction->admit(std::span(&entry, 1)));
  if (const std::string why = obstacle_of(verdicts.front(), *id); !why.empty())
    return not_set_aside(request, why);
  transaction->on_behalf_of(0);
  const std::string reason = std::string(by_hand_prefix) + request.reason;
  ONCE_TRY(transaction->settle(delivery, parked(reason)));
  if (!options.park_to.empty())
    ONCE_TRY(transaction->enqueue(options.park_to,
                                  dead_letter_of(delivery, {.reason = reason,
                                                            .tag = "by_hand",
                                                            .scope = options.scope,
                                                            .source = source.traits().name})));
  ONCE_TRY(transaction->commit());
  return SetAside{options.scope, request.partition, request.offset, *id};
}

Json json_of(const SetAside& message) {
  Json json = {{"action", "add"},
               {"scope", message.scope},
               {"partition", message.partition},
               {"offset", message.offset}};
  put_bytes(json, "id", message.id);
  return json;
}

}  // namespace once::operate
