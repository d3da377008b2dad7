// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "wire/pulsar/error.h"

namespace once::pulsar {
namespace {

constexpr int redirects_max = 20;

Result<Endpoint> endpoint_in(std::string_view url, const std::string& where) {
  const auto parsed = parse_url(url);
  if (!parsed || !parsed->has_hosts || parsed->hosts.empty())
    return fail(Remedy::stop, "config",
                fmt::format("{}: the broker has no address for this scheme; is TLS {} there?",
                            where, url.empty() ? "off" : "on"));
  return endpoints_of(*parsed, 6650).front();
}

}  // namespace

Result<std::shared_ptr<Connection>> Client::connection(const Endpoint& server,
                                                       const std::string& behind_proxy) {
  std::shared_ptr<Connection>& known = connections_[{server, behind_proxy}];
  if (known && !known->is_lost()) return known;
  known.reset();
  auto opened = Connection::open(address_, server, behind_proxy);
  if (!opened) {
    connections_.erase({server, behind_proxy});
    return opened;
  }
  return known = *opened;
}

// Any of the servers of the address; where they are proxies, with a broker behind it.
Result<std::shared_ptr<Connection>> Client::service(const std::string& behind_proxy) {
  Result<std::shared_ptr<Connection>> last = fail(Remedy::stop, "url", "no server is named");
  for (const Endpoint& server : address_.hosts) {
    last = connection(server, behind_proxy);
    if (last || last.error().remedy == Remedy::stop) return last;
  }
  return last;
}

Result<std::uint32_t> Client::partition_count() {
  const auto server = ONCE_TRY(service());
  const std::uint64_t request = server->next_number();
  auto answer = server->ask(partitions_frame(request, address_.full_topic()), request,
                            fmt::format("find the topic {}", address_.full_topic()));
  if (!answer) return fail(answer.error());
  return answer->command.partition_count;
}

Result<std::vector<std::string>> Client::topics() {
  const std::uint32_t count = ONCE_TRY(partition_count());
  if (count == 0) return std::vector<std::string>{address_.full_topic()};
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i)
    names.push_back(fmt::format("{}-partition-{}", address_.full_topic(), i));
  return names;
}

Result<std::vector<std::string>> Client::topics_of_namespace() {
  const auto server = ONCE_TRY(service());
  const std::uint64_t request = server->next_number();
  const Answer answer = ONCE_TRY(server->ask(topics_frame(request, address_.name_space), request,
                                             "list the topics of " + address_.name_space));
  return std::vector<std::string>(answer.command.topics.begin(), answer.command.topics.end());
}

Result<std::shared_ptr<Connection>> Client::connection_for(const std::string& topic) {
  std::shared_ptr<Connection> asked = ONCE_TRY(service());
  bool authoritative = false;
  for (int i = 0; i < redirects_max; ++i) {
    const std::uint64_t request = asked->next_number();
    const Answer answer =
        ONCE_TRY(asked->ask(lookup_frame(request, topic, authoritative, address_.listener), request,
                            "find the broker of " + topic));
    const Command& found = answer.command;
    const std::string_view url = address_.tls ? found.url_tls : found.url;
    const Endpoint broker = ONCE_TRY(endpoint_in(url, asked->name()));
    asked = found.through_proxy ? ONCE_TRY(service(shown_endpoint(broker)))
                                : ONCE_TRY(connection(broker, {}));
    if (found.response == lookup_connect) return asked;
    authoritative = found.authoritative;
  }
  return fail(Remedy::retry, "away",
              fmt::format("{}: the brokers name each other for {} and none has it",
                          address_.where(), topic));
}

void Client::cut_connections() {
  for (const auto& [key, connection] : connections_)
    (void)::shutdown(connection->descriptor(), SHUT_RDWR);
}

void Client::serve(net::Deadline deadline) {
  using std::chrono::duration_cast, std::chrono::milliseconds, std::chrono::steady_clock;
  std::erase_if(connections_, [](const auto& one) { return one.second->is_lost(); });
  std::vector<pollfd> waiting;
  for (const auto& [key, connection] : connections_)
    waiting.push_back({connection->descriptor(), POLLIN, 0});
  const auto left = duration_cast<milliseconds>(deadline - steady_clock::now()).count();
  const int wait_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
  if (::poll(waiting.data(), waiting.size(), wait_ms) < 0) return;
  for (const auto& [key, connection] : connections_) (void)connection->serve({});
}

}  // namespace once::pulsar
