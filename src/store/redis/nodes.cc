// SPDX-License-Identifier: Apache-2.0
#include "store/redis/nodes.h"

#include <charconv>
#include <utility>

namespace once {
namespace {

constexpr int redirections_max = 16;

// "MOVED 3999 127.0.0.1:6381": where the slot is. Without a host it is the one we asked.
std::optional<Endpoint> target_of(std::string_view text, const Endpoint& asked) {
  const std::size_t space = text.rfind(' ');
  const std::size_t colon = text.rfind(':');
  if (space == std::string_view::npos || colon == std::string_view::npos || colon < space)
    return std::nullopt;
  Endpoint target;
  target.host = text.substr(space + 1, colon - space - 1);
  if (target.host.empty()) target.host = asked.host;
  const auto port = text.substr(colon + 1);
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), target.port);
  if (parsed.ec != std::errc()) return std::nullopt;
  return target;
}

}  // namespace

Result<std::unique_ptr<RedisConnection>> RedisNodes::connect(const Endpoint* endpoint) {
  if (endpoint != nullptr) return RedisConnection::open(address_, *endpoint);
  Result<std::unique_ptr<RedisConnection>> connection;
  for (const Endpoint& host : address_.hosts) {
    connection = RedisConnection::open(address_, host);
    if (!connection) continue;
    const std::lock_guard lock(mutex_);
    first_ = host;
    break;
  }
  return connection;
}

// From an endpoint we were sent to, or, without one, from the first host of the URL that answers.
Result<std::unique_ptr<RedisConnection>> RedisNodes::lend(const Endpoint* endpoint) {
  {
    const std::lock_guard lock(mutex_);
    const Endpoint* const from = endpoint != nullptr ? endpoint : first_ ? &*first_ : nullptr;
    if (from != nullptr) {
      auto& idle = idle_[*from];
      while (!idle.empty()) {
        auto connection = std::move(idle.back());
        idle.pop_back();
        if (!connection->closed_by_server()) return connection;
      }
    }
  }
  auto connection = connect(endpoint);
  if (connection && (*connection)->clustered()) clustered_ = true;
  if (!connection && endpoint != nullptr) forget_node(*endpoint);
  return connection;
}

void RedisNodes::give_back(std::unique_ptr<RedisConnection> connection) {
  if (connection->broken()) return forget_node(connection->endpoint());
  const std::lock_guard lock(mutex_);
  auto& idle = idle_[connection->endpoint()];
  if (idle.size() < idle_connections_max_) idle.push_back(std::move(connection));
}

// One broken connection usually means that the server went away: its idle ones are of no use, and
// its slots may be elsewhere by now.
void RedisNodes::forget_node(const Endpoint& endpoint) {
  const Endpoint gone = endpoint;
  const std::lock_guard lock(mutex_);
  idle_.erase(gone);
  std::erase_if(slots_, [&](const auto& known) { return known.second == gone; });
}

std::optional<Endpoint> RedisNodes::next_group(const Asked& asked, Calls& group) {
  const std::lock_guard lock(mutex_);
  const auto endpoint_of = [&](std::size_t place) -> std::optional<Endpoint> {
    const auto found = slots_.find(asked.calls[place].slot());
    if (found == slots_.end()) return std::nullopt;
    return found->second;
  };
  std::optional<Endpoint> endpoint = endpoint_of(asked.open.front());
  for (const std::size_t place : asked.open)
    if (endpoint_of(place) == endpoint) group.push_back(place);
  return endpoint;
}

Status RedisNodes::settle(Asked& asked, std::size_t place, RedisAnswer answer, RedisStage stage) {
  std::erase(asked.open, place);
  if (answer.is_error())
    return fail(error_from_redis(answer.text(), stage, address_.where(),
                                 stage == RedisStage::write ? "write" : "read"));
  asked.answers[place] = std::move(answer);
  return {};
}

// A slot that is on its way to another node: this one request goes there.
Status RedisNodes::ask_elsewhere(Asked& asked, std::size_t place, const Endpoint& endpoint,
                                 RedisStage stage) {
  auto connection = ONCE_TRY(lend(&endpoint));
  const RedisCall asking(0, {"ASKING"});
  const std::vector<const RedisCall*> both{&asking, &asked.calls[place]};
  auto answers = connection->ask(both, stage);
  give_back(std::move(connection));
  if (!answers) return fail(std::move(answers).error());
  return settle(asked, place, std::move((*answers)[1]), stage);
}

Status RedisNodes::ask_group(Asked& asked, const Calls& group,
                             const std::optional<Endpoint>& endpoint, RedisStage stage) {
  auto connection = ONCE_TRY(lend(endpoint ? &*endpoint : nullptr));
  std::vector<const RedisCall*> calls;
  for (const std::size_t place : group) calls.push_back(&asked.calls[place]);
  auto answers = connection->ask(calls, stage);
  const Endpoint here = connection->endpoint();
  if (answers)
    for (const RedisAnswer& answer : *answers)
      if (answer.is_error() && word_of(answer.text()) == "READONLY")
        connection->give_up();  // it has become a replica: look for the primary
  give_back(std::move(connection));
  if (!answers) return fail(std::move(answers).error());
  for (std::size_t i = 0; i < group.size(); ++i) {
    RedisAnswer& answer = (*answers)[i];
    const std::string_view word = answer.is_error() ? word_of(answer.text()) : std::string_view();
    const auto target = target_of(answer.text(), here);
    if (word == "MOVED" && target) {  // not run: it stays open, and is sent there
      clustered_ = true;
      const std::lock_guard lock(mutex_);
      slots_[asked.calls[group[i]].slot()] = *target;
    } else if (word == "ASK" && target) {
      ONCE_TRY(ask_elsewhere(asked, group[i], *target, stage));
    } else {
      ONCE_TRY(settle(asked, group[i], std::move(answer), stage));
    }
  }
  return {};
}

Result<std::vector<RedisAnswer>> RedisNodes::ask(std::span<const RedisCall> calls,
                                                 RedisStage stage) {
  Asked asked{calls, std::vector<std::optional<RedisAnswer>>(calls.size()), {}};
  for (std::size_t i = 0; i < calls.size(); ++i) asked.open.push_back(i);
  Status done;
  for (int attempt = 0; done && !asked.open.empty(); ++attempt) {
    Calls group;
    const auto endpoint = next_group(asked, group);
    done = ask_group(asked, group, endpoint, stage);
    if (done && attempt > redirections_max + static_cast<int>(calls.size()))
      done = fail(Remedy::retry, "busy",
                  address_.where() + ": sent from node to node; is the cluster being changed?");
  }
  if (done) {
    std::vector<RedisAnswer> answers;
    for (auto& answer : asked.answers) answers.push_back(std::move(*answer));
    return answers;
  }
  Error error = std::move(done).error();
  if (stage == RedisStage::write && error.remedy == Remedy::retry)
    for (const auto& answer : asked.answers)
      if (answer) error.remedy = Remedy::recheck;  // some of it has happened
  return fail(std::move(error));
}

}  // namespace once
