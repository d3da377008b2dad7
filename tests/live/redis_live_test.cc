// SPDX-License-Identifier: Apache-2.0
#include "live/live_suite.h"
#include "live/live_suite_disk.h"
#include "store/redis/slot.h"
#include "testing/redis_home.h"

namespace once::testing {
namespace {

using Home = RedisHome;

LiveServer& server() { return Home::server(); }
std::string administer(const std::string& command) { return Home::administer(command); }

LiveKind redis() {
  LiveKind kind = live_kind<Home>();
  kind.small_disk.disk = "48M";
  return kind;
}

INSTANTIATE_TEST_SUITE_P(Redis, LiveSuite, ::testing::Values(redis()));
INSTANTIATE_TEST_SUITE_P(Redis, FullDisk, ::testing::Values(redis()));

std::string with(const std::string& url, const std::string& from, const std::string& to) {
  std::string changed = url;
  changed.replace(changed.find(from), from.size(), to);
  return changed;
}

// A setting of the running server, until this goes.
class Setting {
 public:
  Setting(std::string name, const std::string& value, std::string usual)
      : name_(std::move(name)), usual_(std::move(usual)) {
    administer("CONFIG SET " + name_ + " " + value);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() { administer("CONFIG SET " + name_ + " " + usual_); }

 private:
  const std::string name_;
  const std::string usual_;
};

std::vector<ClaimAnswer> claim_all(Store& store, const std::vector<std::string>& ids,
                                   std::string_view owner = "A") {
  std::vector<ClaimRequest> requests;
  for (const std::string& id : ids) requests.push_back({.id = id});
  return store.claims()->claim("bank", {owner, 60'000, AfterLoss::doubt}, requests).value();
}

TEST(RedisLive, wrong_credentials_are_told_apart_and_secrets_are_not_shown) {
  const std::string url = server().url();
  for (const std::string& wrong :
       {with(url, "once-test-secret", "hush"), with(url, ":once-test-secret", "nobody:hush")}) {
    const auto refused = open_redis_store(wrong);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().tag, "denied");
    EXPECT_EQ(refused.error().remedy, Remedy::stop);
    EXPECT_EQ(refused.error().text.find("hush"), std::string::npos);
  }
  const auto anonymous = open_redis_store(with(url, ":once-test-secret@", ""));
  ASSERT_FALSE(anonymous);
  EXPECT_EQ(anonymous.error().tag, "denied");
  const auto wrong_database = open_redis_store(url + "/99");
  ASSERT_FALSE(wrong_database);
  EXPECT_EQ(wrong_database.error().tag, "missing");
  EXPECT_EQ(wrong_database.error().text.find("once-test-secret"), std::string::npos);
  const auto nobody = open_redis_store("redis://127.0.0.1:1");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().tag, "away");
  EXPECT_EQ(nobody.error().remedy, Remedy::retry);
  EXPECT_EQ(open_redis_store(url).value()->traits().name.find("secret"), std::string::npos);
}

// The rights that docs/stores/redis.md asks for.
constexpr const char* documented_rights =
    "-@all +@read +@write -@dangerous +eval +evalsha +time +select +asking +info +config|get";

TEST(RedisLive, the_documented_rights_are_enough_and_missing_ones_are_named) {
  const std::string url = with(server().url(), ":once-test-secret", "clerk:clerk");
  const std::string keys = "~{clerk}/* ~clerk:* ";
  administer("ACL SETUSER clerk reset on >clerk " + keys + documented_rights);
  const std::string place = "?prefix=clerk&keys=clerk:";
  auto opened = open_redis_store(url + place);
  ASSERT_TRUE(opened) << opened.error().text;
  Store& store = **opened;
  const std::uint64_t fence = store.take("shop", "p0").value().fence;
  auto transaction = store.begin("shop").value();
  ASSERT_TRUE(transaction->advance("p0", {-1, fence}, 1));
  ASSERT_TRUE(transaction->admit(std::vector{entry("a"), entry("b", 1)}));
  ASSERT_TRUE(transaction->settle(delivery("b", 1), parked("broken")));
  ASSERT_TRUE(transaction->enqueue("next", {.id = "a"}));
  ASSERT_TRUE(add_effect(*transaction, "a"));
  const Status committed = transaction->commit();
  ASSERT_TRUE(committed) << committed.error().text;
  EXPECT_EQ(effects_of(store), std::vector<std::string>{"a"});
  EXPECT_EQ(claim_all(store, {"pay"})[0].kind, ClaimAnswer::Kind::granted);
  EXPECT_EQ(store.forget("shop", birth_ms + 1, 10).value().rows, 2u);
  EXPECT_EQ(store.outbox()->pending("next", 10).value().size(), 1u);
  EXPECT_EQ(store.records()->scopes().value().size(), 2u);

  // A key that is not his, found by the handler that reads and by the commit that writes.
  const auto theirs = open_redis_store(url + "?prefix=clerk").value();
  EXPECT_EQ(theirs->begin("shop").value()->key_value()->get("other").error().tag, "denied");
  auto writer = theirs->begin("shop").value();
  ASSERT_TRUE(writer->advance("p0", {1, fence}, 2));
  ASSERT_TRUE(writer->key_value()->put("other", "x"));
  EXPECT_EQ(writer->commit().error().tag, "denied");
  EXPECT_EQ(store.position("shop", "p0").value(), (Position{1, fence}));

  administer("ACL SETUSER clerk -evalsha -eval");
  const auto denied = open_redis_store(url + place);
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().tag, "denied");
  EXPECT_NE(denied.error().text.find("eval"), std::string::npos) << denied.error().text;
}

TEST(RedisLive, H22_a_server_that_does_not_tell_its_settings_is_believed_only_by_name) {
  administer(std::string("ACL SETUSER guest reset on >guest ~* ") + documented_rights +
             " -config -info");
  const std::string url = with(server().url(), ":once-test-secret", "guest:guest");
  const auto refused = open_redis_store(url);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "denied");
  EXPECT_NE(refused.error().text.find("unchecked=yes"), std::string::npos) << refused.error().text;
  const auto believed = open_redis_store(url + "?unchecked=yes&durability=process");
  ASSERT_TRUE(believed) << believed.error().text;
  EXPECT_EQ((*believed)->traits().durability, StoreTraits::Durability::process);
}

TEST(RedisLive, H22_settings_that_lose_commits_are_refused_or_the_promise_is_lowered_by_name) {
  using Durability = StoreTraits::Durability;
  const std::string url = server().url();
  const auto kept_with = [&](const std::string& named) -> std::optional<Durability> {
    auto store = open_redis_store(url + named);
    if (store) return (*store)->traits().durability;
    EXPECT_EQ(store.error().tag, "unsafe") << store.error().text;
    return std::nullopt;
  };
  EXPECT_EQ(kept_with(""), Durability::power);
  {
    const Setting setting("appendfsync", "everysec", "always");
    EXPECT_EQ(kept_with(""), std::nullopt);
    EXPECT_EQ(kept_with("?durability=process"), std::nullopt);
    EXPECT_EQ(kept_with("?durability=none"), Durability::none);
  }
  {
    const Setting setting("appendfsync", "no", "always");
    EXPECT_EQ(kept_with(""), std::nullopt);
    EXPECT_EQ(kept_with("?durability=process"), Durability::process);
  }
  {
    const Setting setting("no-appendfsync-on-rewrite", "yes", "no");
    EXPECT_EQ(kept_with(""), std::nullopt);
    EXPECT_EQ(kept_with("?durability=process"), Durability::process);
  }
  {
    const Setting setting("maxmemory-policy", "allkeys-lru", "noeviction");
    EXPECT_EQ(kept_with(""), Durability::power);  // without a limit nothing is thrown away
    const Setting limit("maxmemory", "1gb", "0");
    EXPECT_EQ(kept_with("?durability=none"), std::nullopt);
  }
  {
    const Setting setting("appendonly", "no", "yes");
    EXPECT_EQ(kept_with("?durability=process"), std::nullopt);
    EXPECT_EQ(kept_with("?durability=none"), Durability::none);
  }
}

// What was right when the store was opened is looked at again by every new connection.
TEST(RedisLive, H22_settings_that_are_changed_later_are_noticed_with_the_next_connection) {
  ChaosProxy proxy(server().port());
  const auto store = open_redis_store(server().url_at(proxy.port())).value();
  ASSERT_TRUE(store->position("shop", "p0"));
  const Setting setting("appendfsync", "everysec", "always");
  proxy.cut_all();
  const auto broken = [&] { return store->position("shop", "p0"); };
  auto seen = broken();
  for (int i = 0; i < 3 && (seen || seen.error().tag == "away"); ++i) seen = broken();
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().tag, "unsafe");
}

TEST(RedisLive, H22_a_replica_is_refused_and_the_next_host_is_asked) {
  LiveServer other("redis");
  Home::administer("CONFIG SET masterauth once-test-secret", other.url());
  Home::administer("REPLICAOF 127.0.0.1 " + std::to_string(server().port()), other.url());
  const auto replica = open_redis_store(other.url());
  ASSERT_FALSE(replica);
  EXPECT_EQ(replica.error().tag, "replica");
  const std::string both =
      with(server().url(), "@", "@127.0.0.1:" + std::to_string(other.port()) + ",");
  const auto store = open_redis_store(both);
  ASSERT_TRUE(store) << store.error().text;
  EXPECT_TRUE((*store)->take("hosts", "p0"));
  // The roles change under the store. It finds the new primary.
  Home::administer("REPLICAOF NO ONE", other.url());
  administer("CONFIG SET masterauth once-test-secret");
  administer("REPLICAOF 127.0.0.1 " + std::to_string(other.port()));
  Result<Position> taken = (*store)->take("hosts", "p0");
  for (int i = 0; i < 50 && !taken; ++i) {
    EXPECT_NE(taken.error().remedy, Remedy::stop) << taken.error().text;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    taken = (*store)->take("hosts", "p0");
  }
  administer("REPLICAOF NO ONE");
  ASSERT_TRUE(taken) << taken.error().text;
}

TEST(RedisLive, keys_of_a_newer_program_or_with_other_shards_are_refused) {
  const std::string url = server().url() + "?prefix=newer";
  ASSERT_TRUE(open_redis_store(url + "&shards=4"));
  const auto other = open_redis_store(url);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().tag, "config");
  EXPECT_NE(other.error().text.find("shards=4"), std::string::npos) << other.error().text;
  administer("HSET {newer}/meta version 99");
  const auto refused = open_redis_store(url + "&shards=4");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "newer");
}

TEST(RedisLive, H30_a_server_that_hangs_is_waited_for_with_a_limit_and_its_commit_is_unknown) {
  ChaosProxy proxy(server().port());
  const std::string url = server().url_at(proxy.port()) + "?prefix=hangs&answer-ms=100";
  const auto store = open_redis_store(url).value();
  auto transaction = store->begin("shop").value();
  ASSERT_TRUE(transaction->advance("p0", {}, 1));
  proxy.stall(true);
  const Status commit = transaction->commit();
  ASSERT_FALSE(commit);
  EXPECT_EQ(commit.error().remedy, Remedy::recheck);
  const auto read = store->position("shop", "p0");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().remedy, Remedy::retry);
  proxy.stall(false);
  EXPECT_TRUE(store->position("shop", "p0"));
}

TEST(RedisLive, a_server_that_forgot_the_scripts_is_told_them_again) {
  const auto store = open_redis_store(server().url() + "?prefix=flushed").value();
  for (int i = 0; i < 3; ++i) {
    administer("SCRIPT FLUSH");
    auto transaction = store->begin("shop").value();
    ASSERT_TRUE(transaction->advance("p0", {i == 0 ? -1 : i, 0}, i + 1));
    ASSERT_TRUE(transaction->commit());
  }
  EXPECT_EQ(store->position("shop", "p0").value(), (Position{3, 0}));
}

TEST(RedisLive, a_key_of_another_kind_is_left_alone_and_parks_only_its_message) {
  administer("RPUSH basket apple");
  const auto store = open_redis_store(server().url() + "?prefix=kinds").value();
  auto reader = store->begin("shop").value();
  reader->on_behalf_of(3);
  const auto read = reader->key_value()->get("basket");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().remedy, Remedy::park);
  EXPECT_EQ(read.error().culprit.value().message, 3u);
  auto writer = store->begin("shop").value();
  ASSERT_TRUE(writer->advance("p0", {}, 1));
  writer->on_behalf_of(1);
  ASSERT_TRUE(writer->key_value()->put("apple", "1"));
  writer->on_behalf_of(2);
  ASSERT_TRUE(writer->key_value()->put("basket", "2"));
  const Status written = writer->commit();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().remedy, Remedy::park);
  EXPECT_EQ(written.error().culprit.value().message, 2u);
  EXPECT_EQ(store->position("shop", "p0").value(), Position{});
  EXPECT_EQ(administer("EXISTS apple"), "");
  EXPECT_EQ(administer("TYPE basket"), "list");
  auto thief = store->begin("shop").value();
  EXPECT_EQ(thief->key_value()->put("{kinds}/ledger/shop", "x").error().tag, "config");
}

// Every one of our own keys may be of another kind: then nothing at all is written.
TEST(RedisLive, books_that_somebody_has_spoiled_stop_a_commit_before_it_writes) {
  const std::vector<std::string> kinds{"scopes",      "positions/shop",  "ledger/shop",
                                       "parked/shop", "operations/shop", "destinations",
                                       "outbox/next"};
  for (const std::string& kind : kinds) {
    administer("FLUSHALL");
    const auto store = open_redis_store(server().url() + "?prefix=spoiled").value();
    administer("SET {spoiled}/" + kind + " nonsense");
    auto transaction = store->begin("shop").value();
    ASSERT_TRUE(transaction->advance("p0", {}, 1));
    const auto verdicts = transaction->admit(std::vector{entry("a"), entry("b", 1)});
    if (kind == "ledger/shop") {
      EXPECT_FALSE(verdicts);
      continue;
    }
    ASSERT_TRUE(transaction->settle(delivery("b", 1), parked("broken")));
    ASSERT_TRUE(transaction->enqueue("next", {.id = "a"}));
    ASSERT_TRUE(transaction->key_value()->put("spoiled effect", "1"));
    EXPECT_FALSE(transaction->commit()) << kind;
    const auto keys = Home::list({"KEYS", "*spoiled*"});
    EXPECT_EQ(keys.size(), 2u) << kind;  // what is spoiled, and the version
  }
  administer("FLUSHALL");
}

// The same for what the relay and people change: each with the keys that it uses.
TEST(RedisLive, books_that_somebody_has_spoiled_stop_a_correction_before_it_writes) {
  struct Change {
    std::vector<std::string> keys;
    std::function<Status(Store&, std::uint64_t fence)> make;
  };
  const auto correct = [](const Correction& correction) {
    return [correction](Store& store, std::uint64_t) {
      return store.repairs()->correct("shop", correction, "why");
    };
  };
  const std::vector<Change> changes{
      {{"positions/once.relay", "outbox/next", "routes/next", "sequences/next", "scopes",
        "parked/once.outbox", "operations/once.outbox"},
       [](Store& store, std::uint64_t fence) {
         return store.outbox()->park("next", fence, 1, "why");
       }},
      {{"positions/shop", "scopes", "operations/shop"}, correct(SetPosition{"p0", 1})},
      {{"horizon/shop", "held/shop", "scopes", "operations/shop"}, correct(SetHorizon{1})},
      {{"held/shop", "scopes", "operations/shop"}, correct(ReleaseHorizon{})},
      {{"positions/once.relay", "routes/next", "sequences/next", "scopes", "operations/shop"},
       correct(RestartDestination{"next"})},
      {{"positions/once.relay", "routes/next", "sequences/next", "outbox/next", "scopes",
        "operations/shop"},
       correct(DropPending{"next"})}};
  const auto snapshot = [] {
    std::map<std::string, std::string> all;
    for (const std::string& key : Home::list({"KEYS", "*spoiled*"}))
      all[key] = Home::answer_to({"DUMP", key}, server().url()).text();
    return all;
  };
  for (const Change& change : changes)
    for (const std::string& key : change.keys) {
      administer("FLUSHALL");
      const auto store = open_redis_store(server().url() + "?prefix=spoiled").value();
      auto transaction = store->begin("shop").value();
      for (const char* id : {"a", "b"}) ASSERT_TRUE(transaction->enqueue("next", {.id = id}));
      ASSERT_TRUE(transaction->commit());
      const std::uint64_t fence = store->take(relay_scope, "next").value().fence;
      ASSERT_TRUE(store->outbox()->assign("next", fence, std::vector<std::int64_t>{1, 2},
                                          std::vector<std::uint32_t>{0, 0}));
      administer("DEL {spoiled}/" + key);
      administer("GEOADD {spoiled}/" + key + " 1 1 nonsense");  // a kind that none of them has
      const auto before = snapshot();
      EXPECT_FALSE(change.make(*store, fence)) << key;
      EXPECT_EQ(snapshot(), before) << key;
    }
  administer("FLUSHALL");
}

// What the version before 2 has left: no identity, positions without progress.
TEST(RedisLive, keys_of_version_1_are_read_and_written_on) {
  const std::string url = server().url() + "?prefix=old";
  administer("HSET {old}/meta version 1 shards 1");
  Home::answer_to({"HSET", "{old}/positions/shop", "p0", "25 3"}, server().url());
  std::string identity;
  {
    const auto store = open_redis_store(url).value();
    identity = store->traits().identity;
    EXPECT_EQ(identity.size(), 32u);
    const auto known = store->records()->describe("shop").value().partitions;
    ASSERT_EQ(known.size(), 1u);
    EXPECT_EQ(known[0].position, (Position{25, 3}));
    EXPECT_EQ(known[0].position.witness, Witness{});
    EXPECT_EQ(known[0].settled_ms, -1);
    auto transaction = store->begin("shop").value();
    ASSERT_TRUE(transaction->advance("p0", {25, 3}, 26, {.settled_ms = 7, .witness = {25, 1}}));
    ASSERT_TRUE(transaction->commit());
    const Position taken = store->take("shop", "p0", "topic").value();
    EXPECT_EQ(taken.offset, 26);
    EXPECT_GT(taken.fence, 3u);
  }
  EXPECT_EQ(administer("HGET {old}/meta version"), "3");
  const auto again = open_redis_store(url).value();
  EXPECT_EQ(again->traits().identity, identity);
  EXPECT_EQ(again->position("shop", "p0").value().witness, (Witness{25, 1}));
  EXPECT_EQ(again->take("shop", "p0", "another").error().tag, "gone");
}

// What the version before 3 has left: it knew no messages that wait, and would not read the outcome
// of their ids.
TEST(RedisLive, keys_of_version_2_are_read_and_messages_can_wait_there) {
  const std::string url = server().url() + "?prefix=older";
  const std::string identity(32, 'a');
  administer("HSET {older}/meta version 2 shards 1 identity " + identity);
  const auto store = open_redis_store(url).value();
  EXPECT_EQ(store->traits().identity, identity);
  EXPECT_EQ(administer("HGET {older}/meta version"), "3");
  Delivery delivery;
  delivery.partition = "p0";
  delivery.id = "waits";
  delivery.attempt = 1;
  const Entry entry{
      .id = "waits", .fingerprint = {}, .born_ms = 1000, .partition = "p0", .offset = 0};
  auto transaction = store->begin("shop").value();
  ASSERT_TRUE(transaction->admit(std::span(&entry, 1)));
  ASSERT_TRUE(transaction->settle(delivery, later("not yet", 0)));
  ASSERT_TRUE(transaction->commit());
  const auto due = store->deferrals()->due("shop", 10).value();
  ASSERT_EQ(due.messages.size(), 1u);
  EXPECT_EQ(due.messages[0].message.id, "waits");
}

TEST(RedisLive, H01_a_thousand_claims_of_one_id_at_once_are_granted_once) {
  const auto store = open_redis_store(server().url() + "?prefix=crowd&shards=4").value();
  std::atomic<int> granted = 0, busy = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 50; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const auto answers = claim_all(*store, {"the one"}, "owner " + std::to_string(t));
        ++(answers[0].kind == ClaimAnswer::Kind::granted ? granted : busy);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(granted, 1);
  EXPECT_EQ(busy, 999);
}

// Claims that were granted are there after the server was killed; none is granted twice.
TEST(RedisLive, H22_claims_survive_a_server_that_is_killed_under_load) {
  const std::string url = Home::in(Home::make_place());
  const auto store = open_redis_store(url).value();
  constexpr int rounds = 60, per_round = 50;
  std::map<std::string, int> granted, unknown;
  std::atomic<bool> done = false;
  std::thread killer([&] {
    for (int i = 0; i < 3 && !done; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      server().kill();
      server().start();
    }
  });
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::string> ids;
    for (int i = 0; i < per_round; ++i) ids.push_back(fmt::format("pay {}", round * per_round + i));
    std::vector<ClaimRequest> requests;
    for (const std::string& id : ids) requests.push_back({.id = id});
    for (bool answered = false; !answered;) {
      const auto answers = store->claims()->claim("bank", {"A", 60'000, {}}, requests);
      answered = answers.has_value();
      if (!answered) {
        ASSERT_NE(answers.error().remedy, Remedy::stop) << answers.error().text;
        if (answers.error().remedy == Remedy::recheck)
          for (const std::string& id : ids) ++unknown[id];
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        continue;
      }
      for (std::size_t i = 0; i < ids.size(); ++i)
        if ((*answers)[i].kind == ClaimAnswer::Kind::granted) ++granted[ids[i]];
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  done = true;
  killer.join();
  const auto fresh = open_redis_store(url).value();
  const auto all = fresh->claims()->claims("bank", std::nullopt, "", 10'000).value();
  ASSERT_EQ(all.size(), std::size_t{rounds * per_round});
  for (const ClaimRecord& record : all) {
    EXPECT_EQ(record.attempts, 1u) << record.id;
    // Whose answer was lost may hold a claim that nobody knows of: it is busy, never granted twice.
    const int grants = granted[record.id];
    if (unknown.contains(record.id))
      EXPECT_LE(grants, 1) << record.id;
    else
      EXPECT_EQ(grants, 1) << record.id;
  }
}

// --- memory

TEST_P(LiveSuite,
       H30_a_server_without_memory_is_waited_for_and_lets_what_forgets_and_settles_pass) {
  constexpr int count = 200;
  send(0, count);
  send(0, count, "shop again");
  auto store = open();
  ASSERT_TRUE(store->begin("old").value()->commit());
  {
    auto old = store->begin("old").value();
    ASSERT_TRUE(old->admit(std::vector{entry("a")}));
    ASSERT_TRUE(old->commit());
  }
  const auto held = claim_all(*store, {"pay"});
  ASSERT_EQ(held[0].kind, ClaimAnswer::Kind::granted);
  auto limit = std::make_unique<Setting>("maxmemory", "1mb", "0");
  std::atomic<bool> finished = false;
  Status consumed;
  std::thread consumer([&] {
    consumed = consume(*store, options());
    finished = true;
  });
  auto refused = store->begin("old").value();
  ASSERT_TRUE(refused->admit(std::vector{entry("b")}));
  const Status full = refused->commit();
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().remedy, Remedy::retry);
  EXPECT_EQ(full.error().tag, "full");
  EXPECT_FALSE(store->records()->find("old", "b").value());
  EXPECT_EQ(store->forget("old", birth_ms + 1, 10).value().rows, 1u);
  const ClaimChange change{"pay", held[0].record.fence, ClaimState::done, "receipt"};
  EXPECT_TRUE(store->claims()->change("bank", std::span(&change, 1)).value().at(0));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(finished);
  limit.reset();
  consumer.join();
  ASSERT_TRUE(consumed) << consumed.error().text;
  EXPECT_EQ(effects(), ids_to(count));
  EXPECT_EQ(statistics_.duplicates, std::uint64_t{count});
}

// --- a cluster of three nodes

// The store is on another node than the one that is asked first.
struct ClusterHome : RedisHome {
  static constexpr const char* name = "redis_cluster";
  static LiveServer& server() {
    static LiveServer made("redis-cluster");
    return made;
  }
  static std::string prefix() {
    int number = 0;
    while (slot_of(fmt::format("far{}", number)) < 11'000) ++number;
    return fmt::format("far{}", number);
  }
  static Result<std::unique_ptr<Store>> open(const std::string& url) {
    return open_redis_store(fmt::format("{}?prefix={}&keys=%7B{}%7D:", url, prefix(), prefix()));
  }
};

class ClusterSuite : public LiveSuite {
 protected:
  struct Node {
    std::string id;
    std::string url;
  };

  static std::vector<Node> nodes() {
    const std::string url = ClusterHome::server().url();
    std::istringstream lines(Home::administer("CLUSTER NODES", url));
    std::vector<Node> found;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string id, address;
      words >> id >> address;
      const auto port = address.substr(address.find(':') + 1);
      found.push_back(
          {id, ClusterHome::server().url_at(static_cast<std::uint16_t>(std::stoi(port)))});
    }
    return found;
  }

  // Moves the slot of the store to a node, some keys at a time, while it is in use.
  static void move_slot(const Node& from, const Node& to) {
    const std::string slot = std::to_string(slot_of(ClusterHome::prefix()));
    const std::string port = to.url.substr(to.url.rfind(':') + 1);
    Home::administer("CLUSTER SETSLOT " + slot + " IMPORTING " + from.id, to.url);
    Home::administer("CLUSTER SETSLOT " + slot + " MIGRATING " + to.id, from.url);
    for (;;) {
      const auto keys = Home::list({"CLUSTER", "GETKEYSINSLOT", slot, "50"}, from.url);
      if (keys.empty()) break;
      Home::Words words{"MIGRATE", "127.0.0.1",        port,  "", "0", "5000",
                        "AUTH",    "once-test-secret", "KEYS"};
      words.insert(words.end(), keys.begin(), keys.end());
      Home::answer_to(words, from.url);
    }
    // The new owner first, so that there always is one; then all agree before the next move.
    for (const Node& node : {to, from})
      Home::administer("CLUSTER SETSLOT " + slot + " NODE " + to.id, node.url);
    for (const Node& node : nodes())
      while (port_of_owner(node) != port) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  // Who has the slot of the store, as a node sees it.
  static std::string port_of_owner(const Node& node) {
    std::string seen = node.url;
    try {
      Home::administer("EXISTS {" + ClusterHome::prefix() + "}", node.url);
    } catch (const std::exception& sent_elsewhere) {
      seen = sent_elsewhere.what();
    }
    return seen.substr(seen.rfind(':') + 1);
  }
};

INSTANTIATE_TEST_SUITE_P(Cluster, ClusterSuite, ::testing::Values(live_kind<ClusterHome>()));

TEST_P(ClusterSuite, a_cluster_that_is_killed_under_load_loses_and_doubles_nothing) {
  constexpr int count = 1000;
  send(0, count);
  send(0, count, "shop again");
  std::atomic<int> handled = 0;
  std::atomic<bool> killed = false;
  std::thread killer([&] {
    while (handled < count / 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    server().kill();
    killed = true;
    server().start();
  });
  auto store = open();
  const Status consumed =
      consume(*store, options(),
              each([&](const Delivery& delivery, Transaction& transaction) -> Result<Outcome> {
                ONCE_TRY(add_effect(transaction, delivery.id));
                if (++handled >= count / 2)
                  while (!killed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                return applied();
              }));
  killer.join();
  ASSERT_TRUE(consumed) << consumed.error().text;
  EXPECT_EQ(effects(), ids_to(count));
  EXPECT_EQ(statistics_.duplicates, std::uint64_t{count});
}

TEST_P(ClusterSuite,
       a_slot_that_moves_to_another_node_and_back_under_load_loses_and_doubles_nothing) {
  constexpr int count = 1000;
  send(0, count);
  send(0, count, "shop again");
  auto store = open();
  const auto all = nodes();
  const auto owner = [&] {
    for (const Node& node : all)
      if (node.url.ends_with(":" + port_of_owner(node))) return node;
    return all.front();
  }();
  const Node& other = owner.id == all[0].id ? all[1] : all[0];
  std::atomic<bool> done = false;
  std::atomic<int> moves = 0;
  std::thread mover([&] {
    for (int i = 0; i < 4 && !done; ++i, ++moves)
      i % 2 == 0 ? move_slot(owner, other) : move_slot(other, owner);
  });
  const auto slow = [&](const Delivery& delivery, Transaction& transaction) -> Result<Outcome> {
    ONCE_TRY(add_effect(transaction, delivery.id));
    if (delivery.offset % 20 == 0 && moves < 4)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return applied();
  };
  const Status consumed = consume(*store, options(), each(slow));
  done = true;
  mover.join();
  ASSERT_TRUE(consumed) << consumed.error().text;
  EXPECT_GE(moves, 2);
  EXPECT_EQ(effects(), ids_to(count));
  EXPECT_EQ(statistics_.duplicates, std::uint64_t{count});
}

TEST_P(ClusterSuite, claims_are_spread_over_the_nodes_and_each_id_stays_in_its_slot) {
  const std::string url = server().url() + "?prefix=spread&shards=16";
  const auto store = open_redis_store(url).value();
  std::vector<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back(fmt::format("pay {}", i));
  const auto granted = claim_all(*store, ids);
  for (const ClaimAnswer& answer : granted) EXPECT_EQ(answer.kind, ClaimAnswer::Kind::granted);
  const auto again = claim_all(*open_redis_store(url).value(), ids, "B");
  std::vector<ClaimChange> changes;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(again[i].kind, ClaimAnswer::Kind::busy) << ids[i];
    EXPECT_EQ(again[i].record.owner, "A") << ids[i];
    changes.push_back({ids[i], granted[i].record.fence, ClaimState::done, ids[i]});
  }
  EXPECT_EQ(store->claims()->change("bank", changes).value(), std::vector<bool>(1000, true));
  std::size_t used = 0;
  for (const Node& node : nodes())
    used += Home::list({"KEYS", "{spread:*}/claims/bank"}, node.url).empty() ? 0u : 1u;
  EXPECT_EQ(used, 3u);
  const auto settled = claim_all(*store, ids, "C");
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(settled[i].record.result, ids[i]);
  EXPECT_EQ(store->claims()->claims("bank", ClaimState::done, "", 5000).value().size(), 1000u);
  const std::int64_t later = granted[0].now_ms + 1'000'000;
  std::size_t gone = 0;
  for (Forgotten forgotten{0, true}; forgotten.more; gone += forgotten.rows)
    forgotten = store->forget("bank", later, 300).value();
  EXPECT_EQ(gone, 1000u);
  const ClaimRequest old{.id = "pay 1", .born_ms = granted[0].now_ms};
  const auto forgotten = store->claims()->claim("bank", {"A", 1000, {}}, std::span(&old, 1));
  EXPECT_EQ(forgotten.value().at(0).kind, ClaimAnswer::Kind::too_old);
}

TEST_P(ClusterSuite, a_key_of_another_slot_is_refused_with_the_tag_to_use) {
  const auto store = open_redis_store(server().url() + "?prefix=far").value();
  auto transaction = store->begin("shop").value();
  const Status other = transaction->key_value()->put("stock", "1");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().tag, "config");
  EXPECT_NE(other.error().text.find("{far}"), std::string::npos) << other.error().text;
  transaction = store->begin("shop").value();
  ASSERT_TRUE(transaction->advance("p0", {}, 1));
  ASSERT_TRUE(transaction->key_value()->put("stock{far}", "1"));
  ASSERT_TRUE(transaction->commit());
  EXPECT_EQ(store->begin("shop").value()->key_value()->get("stock{far}").value(), "1");
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
