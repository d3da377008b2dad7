// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace once {

class ClaimsEngine;

// What a ticket stands for. The engine knows it for as long as it lives.
struct Ticket::Held {
  ClaimsEngine& engine;
  const std::string scope;
  ClaimRecord record;
  bool settled = false;
  std::atomic<bool> lost{false};
};

// Claims of one program. What is true is in the store; this only keeps callers of one process from
// asking the store about each other, and the leases alive.
class ClaimsEngine final : public Claims {
 public:
  ClaimsEngine(ClaimStore& store, ClaimsOptions options, Clock& clock);
  ~ClaimsEngine() override;

  ClaimVerdict begin(std::string_view scope, const ClaimRequest& request) override;
  std::vector<ClaimVerdict> begin(std::string_view scope,
                                  std::span<const ClaimRequest> requests) override;
  Result<std::vector<bool>> settle(std::span<Ticket> tickets,
                                   std::span<const Outcome> outcomes) override;
  Result<std::size_t> resolve(std::string_view scope) override;
  Status renew() override;

  // For tickets. Writes what the owner decided; "superseded" if it is the owner no longer.
  Status change(Ticket::Held& held, const ClaimChange& change);
  // The ticket died without a decision.
  void abandon(Ticket::Held& held);
  void closed(Ticket::Held& held);
  // What an outcome makes of the claim.
  ClaimChange settlement(const Ticket::Held& held, const Outcome& outcome) const;

 private:
  using Key = std::pair<std::string, std::string>;  // scope and id

  // An effect that runs in this process, for those who want the same.
  struct Running {
    bool finished = false;
    ClaimRecord record;  // as it stood at the end
  };

  std::shared_ptr<Running> running(std::string_view scope, std::string_view id);
  ClaimVerdict ask(std::string_view scope, const ClaimRequest& request);
  Result<std::vector<ClaimAnswer>> claim(std::string_view scope,
                                         std::span<const ClaimRequest> requests);
  Result<std::vector<ClaimAnswer>> find_own(std::string_view scope,
                                            std::span<const ClaimRequest> requests,
                                            const std::string& owner, Error error);
  Result<bool> was_written(const Ticket::Held& held, ClaimState to, bool answered);
  ClaimVerdict verdict_of(std::string_view scope, const ClaimRequest& request, ClaimAnswer answer);
  ClaimVerdict busy_verdict(const ClaimAnswer& answer) const;
  ClaimVerdict resolve_doubt(Ticket ticket);
  std::optional<ClaimVerdict> attach(std::string_view scope, const ClaimRequest& request,
                                     std::int64_t until_ns);
  Ticket make_ticket(std::string_view scope, ClaimRecord record);
  Result<std::vector<bool>> write(std::span<Ticket::Held* const> tickets,
                                  std::span<const ClaimChange> changes);
  void finish(Ticket::Held& held, const ClaimChange& change);
  void keep_leases(const std::stop_token& token);

  ClaimStore& store_;
  const ClaimsOptions options_;
  const std::string owner_;  // unlike any other's, also of the same name
  std::atomic<std::uint64_t> calls_{0};
  Clock& clock_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<Key, std::shared_ptr<Running>> running_;
  std::set<Ticket::Held*> held_;

  std::jthread renewer_;  // last: it uses all of the above
};

}  // namespace once
