// SPDX-License-Identifier: Apache-2.0
#include "simulation/broker.h"

namespace once::simulation {
namespace {

constexpr std::size_t late_requests_max = 20;

tl::unexpected<Error> no_answer() {
  return fail(Remedy::recheck, "lost", "no answer from the broker");
}

}  // namespace

Result<Receipt> Network::append(const PartitionName& where, const Stamp& stamp,
                                std::span<const Message> messages) {
  if (canary_ && stamp.sequence > 0) {
    canary_ = false;
    context_.history.asked(where, stamp, messages);
    const Receipt made_up{.offset = -1, .duplicates = 0};
    context_.history.finished(where, stamp, messages.size(), made_up);
    return made_up;
  }
  const auto keep = [&] {
    if (late_.size() < late_requests_max)
      late_.push_back({where, stamp, {messages.begin(), messages.end()}});
  };
  if (context_.fault(60)) {
    context_.trace.note("request lost");
    return no_answer();
  }
  if (context_.fault(60)) {
    context_.trace.note("request held up");
    keep();
    return no_answer();
  }
  if (context_.fault(60)) {
    context_.trace.note("request doubled");
    keep();
  }
  std::vector<Request> together{{where, stamp, {messages.begin(), messages.end()}}};
  while (!late_.empty() && context_.fault(100)) together.push_back(take_late());
  if (context_.fault(40)) together.push_back(together.front());
  auto answer = broker_.append(together);
  if (answer && context_.fault(80)) {
    context_.trace.note("answer lost");
    return no_answer();
  }
  return answer;
}

Result<Stamp> Network::enter(const PartitionName& where, std::string_view name) {
  if (context_.fault(50)) return no_answer();
  auto answer = broker_.enter(where, name);
  if (answer && context_.fault(20)) answer = broker_.enter(where, name);  // doubled
  if (answer && context_.fault(50)) return no_answer();
  return answer;
}

Request Network::take_late() {
  const std::size_t index = context_.random.below(late_.size());
  Request request = std::move(late_[index]);
  late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(index));
  context_.trace.reached("late request arrives");
  return request;
}

void Network::deliver_late() {
  if (late_.empty()) return;
  const auto answer = broker_.append({take_late()});
  if (!answer && answer.error().tag == "fenced") context_.trace.reached("late request fenced");
}

}  // namespace once::simulation
