// SPDX-License-Identifier: Apache-2.0
#include "model/claim.h"

#include <algorithm>
#include <unordered_map>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "store/redis/redis.h"
#include "store/redis/row.h"
#include "store/redis/script.h"

// What is common is one round trip: the script of `claim` grants what is not there, those of
// `renew` and `change` look at fence and lease. Claims that are there are answered by the rules
// that all stores share; if that makes a difference to one, it is written in a second round trip,
// provided that it is still what it was. The clock is that of the server.

namespace once {
namespace {

constexpr int tries_max = 20;

bool is_granted(const ClaimAnswer& answer) {
  return answer.kind == ClaimAnswer::Kind::granted || answer.kind == ClaimAnswer::Kind::doubtful;
}

}  // namespace

// A span of requests on its way, by distinct ids.
struct RedisStore::Claiming {
  struct One {
    std::string compact;  // as it is kept
    std::size_t shard = 0;
    std::vector<std::size_t> requests;  // that ask for it, in their order
    std::string before = {};            // its row as it is kept; empty: none
    std::string after = {};             // as it must become; empty: it stays
  };

  std::span<const ClaimRequest> requests;
  std::vector<ClaimAnswer> answers;
  std::vector<One> open;

  const ClaimRequest& first(const One& one) const { return requests[one.requests.front()]; }
  // Answers all that ask for one, from its row as it was found.
  Status decide(One& one, const RedisAnswer& found, const ClaimTerms& terms, std::int64_t now_ms,
                std::int64_t horizon_ms);
};

Status RedisStore::Claiming::decide(One& one, const RedisAnswer& found, const ClaimTerms& terms,
                                    std::int64_t now_ms, std::int64_t horizon_ms) {
  std::optional<ClaimRecord> row;
  if (!found.is_nil()) row = ONCE_TRY(claim_record(first(one).id, found.text()));
  one.before = found.text();
  one.after.clear();
  bool written = row.has_value();
  for (const std::size_t place : one.requests) {
    answers[place] = answer_claim(row, requests[place], terms, now_ms, horizon_ms);
    if (!is_granted(answers[place])) continue;
    if (!written && place == one.requests.front())
      one.before = claim_row(*row);  // the script has done that
    else
      one.after = claim_row(*row);
    written = true;
  }
  return {};
}

RedisCall RedisStore::claim_call(const RedisPlace& shard, std::string_view scope,
                                 const ClaimTerms& terms, const Claiming& claiming,
                                 std::vector<std::size_t>& places) const {
  const auto born_now = [&](std::size_t place) {
    return claiming.first(claiming.open[place]).born_ms == 0;
  };
  const auto first_given = std::stable_partition(places.begin(), places.end(), born_now);
  // The rules say what a new claim looks like; the script only adds the time.
  const auto fresh = [&](std::size_t place) {
    std::optional<ClaimRecord> none;
    return answer_claim(none, claiming.first(claiming.open[place]), terms, 0, 0).record;
  };
  ClaimRecord sample = fresh(places.front());
  RedisCall call =
      script(shard, redis_scripts::claim,
             {shard.key("claims", scope), shard.key("horizon", scope), shard.key("scopes")});
  call.add(scope).add(terms.lease_ms).add(claim_row(sample).substr(0, 1));
  call.add(claim_owner(sample.owner)).add(claim_tail(sample));
  call.add(static_cast<std::int64_t>(first_given - places.begin()));
  for (const std::size_t place : places) call.add(claiming.open[place].compact);
  for (const std::size_t place : places) {
    const ClaimRecord record = fresh(place);
    const std::string birth = born_now(place) ? std::string() : eight_bytes(record.born_ms);
    call.add(birth + claim_kept(record));
  }
  return call;
}

Status RedisStore::claim_round(std::string_view scope, const ClaimTerms& terms,
                               Claiming& claiming) {
  std::map<std::size_t, std::vector<std::size_t>> by_shard;
  for (std::size_t place = 0; place < claiming.open.size(); ++place)
    by_shard[claiming.open[place].shard].push_back(place);
  std::vector<RedisCall> calls;
  for (auto& [shard, places] : by_shard)
    calls.push_back(claim_call(keys_.shards()[shard], scope, terms, claiming, places));
  const auto answers = ONCE_TRY(nodes_.ask(calls, RedisStage::write));
  auto answer = answers.begin();
  for (const auto& [shard, places] : by_shard) {
    const std::int64_t now = answer->at(0).number();
    const std::int64_t horizon = number_in_eight(answer->at(1).text());
    std::size_t piece = 2, row = 0;
    for (const std::size_t place : places) {
      if (row == answer->at(piece).size()) {
        ++piece;
        row = 0;
      }
      ONCE_TRY(
          claiming.decide(claiming.open[place], answer->at(piece).at(row++), terms, now, horizon));
    }
    ++answer;
  }
  return write_decided(scope, claiming);
}

// What is left open was changed by another since we looked.
Status RedisStore::write_decided(std::string_view scope, Claiming& claiming) {
  std::erase_if(claiming.open, [](const auto& one) { return one.after.empty(); });
  if (claiming.open.empty()) return {};
  std::map<std::size_t, RedisCall> by_shard;
  std::map<std::size_t, std::vector<std::size_t>> places;
  for (std::size_t place = 0; place < claiming.open.size(); ++place) {
    const auto& one = claiming.open[place];
    const RedisPlace& shard = keys_.shards()[one.shard];
    const auto [call, is_new] = by_shard.try_emplace(
        one.shard, script(shard, redis_scripts::write_claims, {shard.key("claims", scope)}));
    if (is_new) call->second.add("").add("").add("");
    call->second.add(one.compact).add(one.before).add(one.after);
    places[one.shard].push_back(place);
  }
  std::vector<RedisCall> calls;
  for (auto& [shard, call] : by_shard) calls.push_back(std::move(call));
  const auto answers = ONCE_TRY(nodes_.ask(calls, RedisStage::write));
  auto answer = answers.begin();
  for (const auto& [shard, some] : places) {
    for (std::size_t i = 0; i < some.size(); ++i)
      if (answer->at(i).number() == 1) claiming.open[some[i]].after.clear();
    ++answer;
  }
  std::erase_if(claiming.open, [](const auto& one) { return one.after.empty(); });
  return {};
}

Result<std::vector<ClaimAnswer>> RedisStore::claim(std::string_view scope, const ClaimTerms& terms,
                                                   std::span<const ClaimRequest> requests) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_terms(terms));
  ONCE_TRY(check_requests(requests));
  Claiming claiming{requests, std::vector<ClaimAnswer>(requests.size()), {}};
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto [at, is_new] = known.emplace(requests[i].id, claiming.open.size());
    if (is_new) {
      std::string compact(CompactId(requests[i].id).bytes());
      const std::size_t shard = keys_.shard_of(compact);
      claiming.open.push_back({std::move(compact), shard, {}});
    }
    claiming.open[at->second].requests.push_back(i);
  }
  for (int attempt = 0; !claiming.open.empty(); ++attempt) {
    if (attempt == tries_max)
      return fail(Remedy::recheck, "conflict",
                  address_.where() + ": too many rivals for a claim; look which ones are held");
    ONCE_TRY(claim_round(scope, terms, claiming));
  }
  return std::move(claiming.answers);
}

template <class Item, class Add>
Result<std::vector<bool>> RedisStore::change_each(std::string_view scope, const RedisScript& how,
                                                  std::optional<std::int64_t> lease_ms,
                                                  std::span<const Item> items, const Add& add) {
  std::map<std::size_t, RedisCall> by_shard;
  std::map<std::size_t, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const CompactId compact(items[i].id);
    const std::size_t number = keys_.shard_of(compact.bytes());
    const RedisPlace& shard = keys_.shards()[number];
    auto call = by_shard.find(number);
    if (call == by_shard.end()) {
      call = by_shard.emplace(number, script(shard, how, {shard.key("claims", scope)})).first;
      if (lease_ms) call->second.add(*lease_ms);
    }
    call->second.add(compact.bytes());
    call->second.add(eight_bytes(static_cast<std::int64_t>(items[i].fence)));
    add(call->second, items[i]);
    places[number].push_back(i);
  }
  std::vector<RedisCall> calls;
  for (auto& [shard, call] : by_shard) calls.push_back(std::move(call));
  const auto answers = ONCE_TRY(nodes_.ask(calls, RedisStage::write));
  std::vector<bool> ours(items.size());
  auto answer = answers.begin();
  for (const auto& [shard, some] : places) {
    for (std::size_t i = 0; i < some.size(); ++i) ours[some[i]] = answer->at(i).number() == 1;
    ++answer;
  }
  return ours;
}

Result<std::vector<bool>> RedisStore::renew(std::string_view scope, std::int64_t lease_ms,
                                            std::span<const HeldClaim> claims) {
  return change_each(scope, redis_scripts::renew_claims, lease_ms, claims,
                     [](RedisCall&, const HeldClaim&) {});
}

Result<std::vector<bool>> RedisStore::change(std::string_view scope,
                                             std::span<const ClaimChange> changes) {
  ONCE_TRY(check_changes(changes));
  return change_each(scope, redis_scripts::change_claims, std::nullopt, changes,
                     [](RedisCall& call, const ClaimChange& change) {
                       ClaimRecord after;
                       after.reason = change.reason;
                       after.steps.assign(change.steps.begin(), change.steps.end());
                       if (change.to == ClaimState::done && change.result)
                         after.result = std::string(*change.result);
                       call.add(static_cast<std::int64_t>(change.to)).add(claim_tail(after));
                     });
}

Result<std::int64_t> RedisStore::now_ms(const RedisPlace& place) {
  const RedisAnswer time = ONCE_TRY(ask({place.slot(), {"TIME"}}, RedisStage::read));
  return time.at(0).number() * 1000 + time.at(1).number() / 1000 + skew_ms();
}

// False: somebody else has changed it at the same time.
Result<bool> RedisStore::force_once(std::string_view scope, const ClaimForce& force,
                                    ClaimRecord& record) {
  const CompactId compact(force.id);
  const RedisPlace& shard = keys_.shards()[keys_.shard_of(compact.bytes())];
  const std::string key = shard.key("claims", scope);
  const std::string log = books().key("operations", scope);
  const RedisAnswer row =
      ONCE_TRY(ask({shard.slot(), {"HGET", key, compact.bytes()}}, RedisStage::read));
  if (row.is_nil()) return fail(missing_claim(scope, force.id));
  record = ONCE_TRY(claim_record(force.id, row.text()));
  force_claim(record, force, ONCE_TRY(now_ms(shard)));
  const bool together = keys_.shards().size() == 1;
  if (!together) {  // in another slot: the line first, so that nothing is done without one
    RedisCall line = script(books(), redis_scripts::log_operation, {log});
    line.add(force_action(force.to)).add(force.id).add(force.reason);
    ONCE_TRY(ask(line, RedisStage::write));
  }
  RedisCall call = together ? script(shard, redis_scripts::write_claims, {key, log})
                            : script(shard, redis_scripts::write_claims, {key});
  call.add(force_action(force.to)).add(force.id).add(force.reason);
  call.add(compact.bytes()).add(row.text()).add(claim_row(record));
  return ONCE_TRY(ask(call, RedisStage::write)).at(0).number() == 1;
}

Result<ClaimRecord> RedisStore::force(std::string_view scope, const ClaimForce& force) {
  ONCE_TRY(check_force(force));
  ClaimRecord record;
  for (int attempt = 0; attempt < tries_max; ++attempt)
    if (ONCE_TRY(force_once(scope, force, record))) return record;
  return fail(Remedy::retry, "conflict",
              address_.where() + ": the claim is changed all the time; try again");
}

// A hash has no order: the page is chosen from all claims, by one pass over them.
Result<std::vector<ClaimRecord>> RedisStore::claims(std::string_view scope,
                                                    std::optional<ClaimState> state,
                                                    std::string_view from_id,
                                                    std::size_t count_max) {
  std::map<std::string, ClaimRecord> first;
  for (const RedisPlace& shard : keys_.shards()) {
    const std::int64_t now = ONCE_TRY(now_ms(shard));
    const auto see = [&](std::string_view compact, std::string_view row) -> Status {
      std::string id = expand_id(compact);
      if (id < from_id) return {};
      ClaimRecord record = as_of(ONCE_TRY(claim_record(id, row)), now);
      if (state && record.state != *state) return {};
      first.insert_or_assign(std::move(id), std::move(record));
      if (first.size() > count_max) first.erase(std::prev(first.end()));
      return {};
    };
    ONCE_TRY(scan(shard, shard.key("claims", scope), see));
  }
  std::vector<ClaimRecord> records;
  for (auto& [id, record] : first) records.push_back(std::move(record));
  return records;
}

}  // namespace once
