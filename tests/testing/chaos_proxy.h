// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace once::testing {

// A TCP proxy on the loopback address that breaks connections on demand. What it does to the next
// match is set by the test; everything else passes.
class ChaosProxy {
 public:
  explicit ChaosProxy(std::uint16_t target_port);
  ChaosProxy(const ChaosProxy&) = delete;
  ChaosProxy& operator=(const ChaosProxy&) = delete;
  ~ChaosProxy();

  std::uint16_t port() const { return port_; }

  // When a client next sends these bytes ...
  struct Fault {
    std::string match;
    // ... this many bytes of what it sends from there on still arrive; unset: all of them,
    std::optional<std::size_t> client_bytes;
    // and this many bytes of the answer come back before both sides are cut.
    std::size_t answer_bytes = 0;
  };
  void arm(Fault fault);
  // Whether the armed fault has happened.
  bool fired() const { return fired_; }

  // From now on every piece is this late, in both directions.
  void delay(std::int64_t ms) { delay_ms_ = ms; }
  // Nothing passes, and nobody is told: a hung network.
  void stall(bool stalled) { stalled_ = stalled; }
  // New connections are accepted and closed at once.
  void hang_up(bool hanging_up) { hanging_up_ = hanging_up; }
  // Cuts all connections and takes new ones.
  void cut_all();
  // The same behind everything that clients have sent: only answers are lost.
  void cut_all_behind_clients();

  // How often a client has sent something after an answer, of all connections together: each time
  // it has waited once for the way there and back.
  std::uint64_t round_trips() const { return round_trips_; }

 private:
  struct Pipe;
  void accept_all();
  void serve(int client);
  void end_in_peace(int server) const;
  bool forward_client(Pipe& pipe);
  bool forward_server(Pipe& pipe);
  void pause() const;

  const std::uint16_t target_port_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> fired_{false};
  std::atomic<bool> stalled_{false};
  std::atomic<bool> hanging_up_{false};
  std::atomic<bool> clients_first_{false};
  std::atomic<std::int64_t> delay_ms_{0};
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint64_t> round_trips_{0};
  std::mutex mutex_;
  std::optional<Fault> armed_;        // guarded by mutex_
  std::vector<std::thread> threads_;  // guarded by mutex_
  std::thread acceptor_;
};

}  // namespace once::testing
