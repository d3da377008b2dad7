// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redis.h"

#include <fmt/format.h>
#include <once/open.h>

#include "model/ledger.h"
#include "model/random.h"
#include "store/redis/command.h"
#include "store/redis/position.h"
#include "store/redis/script.h"
#include "store/redis/state.h"
#include "store/redis/transaction.h"

namespace once {
RedisStore::RedisStore(RedisAddress address, RedisStoreOptions options)
    : address_(std::move(address)),
      options_(std::move(options)),
      keys_(address_.prefix, address_.shards),
      nodes_(address_, options_.idle_connections_max) {}

Result<std::unique_ptr<RedisStore>> RedisStore::open(std::string_view url,
                                                     RedisStoreOptions options) {
  RedisAddress address = ONCE_TRY(RedisAddress::parse(url));
  std::unique_ptr<RedisStore> store(new RedisStore(std::move(address), std::move(options)));
  if (store->options_.makes_keys)
    ONCE_TRY(store->found());
  else
    ONCE_TRY(store->ask(store->command({"PING"}), RedisStage::open));
  return store;
}

// The first to come writes down how the keys are laid out, and nobody uses them otherwise.
Status RedisStore::found() {
  RedisCall call = script(books(), redis_scripts::found_store, {books().key("meta")});
  call.add(redis_layout_version)
      .add(static_cast<std::int64_t>(address_.shards))
      .add(random_identity());
  const RedisAnswer meta = ONCE_TRY(ask(call, RedisStage::open));
  if (meta.at(0).number() > redis_layout_version)
    return fail(
        Remedy::stop, "newer",
        fmt::format("{}: the keys under \"{}\" have version {}, this program knows {}; use "
                    "a newer one",
                    address_.where(), address_.prefix, meta.at(0).number(), redis_layout_version));
  if (meta.at(1).number() != static_cast<std::int64_t>(address_.shards))
    return fail(Remedy::stop, "config",
                fmt::format("{}: the claims under \"{}\" are spread over {} shards, not {}, and "
                            "would not be found; write shards={}",
                            address_.where(), address_.prefix, meta.at(1).number(), address_.shards,
                            meta.at(1).number()));
  identity_ = meta.at(2).text();
  return {};
}

// A server may have other names for commands, or none, and other versions count arguments
// differently. Where a user may not ask about commands, the first message finds out.
Status RedisStore::check_command(std::span<const std::string> words) {
  const RedisCommand parsed = ONCE_TRY(RedisCommand::parse(words));
  const auto answer = ask(command({"COMMAND", "INFO", parsed.name}), RedisStage::read);
  if (!answer && answer.error().remedy == Remedy::retry) return fail(answer.error());
  if (!answer) return {};
  const RedisAnswer info = answer->at(0);
  if (info.is_nil())
    return fail(Remedy::stop, "config",
                fmt::format("{}: the server has no command {}; was it renamed or disabled?",
                            address_.where(), parsed.name));
  const std::int64_t arity = info.at(1).number();
  const auto count = static_cast<std::int64_t>(words.size());
  if (arity < 0 ? count >= -arity : count == arity) return {};
  return fail(
      Remedy::stop, "config",
      fmt::format("{}: {} takes {}{} words on this server, not {}", address_.where(), parsed.name,
                  arity < 0 ? "at least " : "", arity < 0 ? -arity : arity, count));
}

StoreTraits RedisStore::traits() const {
  return {address_.where(), address_.durability, false, true, true, identity_};
}

RedisCall RedisStore::script(const RedisPlace& place, const RedisScript& script,
                             std::initializer_list<std::string_view> keys) const {
  return std::move(RedisCall(place.slot(), script, keys).add(skew_ms()));
}

Result<RedisAnswer> RedisStore::ask(const RedisCall& call, RedisStage stage) {
  auto answers = ONCE_TRY(nodes_.ask(std::span(&call, 1), stage));
  return std::move(answers.front());
}

Result<std::unique_ptr<Transaction>> RedisStore::begin(std::string_view scope) {
  ONCE_TRY(check_scope(scope));
  return std::make_unique<RedisTransaction>(*this, scope);
}

Result<Position> RedisStore::take(std::string_view scope, std::string_view partition,
                                  std::string_view source_identity) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  ONCE_TRY(check_source_identity(source_identity));
  RedisCall call = script(
      books(), redis_scripts::take,
      {books().key("scopes"), books().key("positions", scope), books().key("operations", scope)});
  call.add(scope).add(partition).add(source_identity);
  const RedisAnswer answer = ONCE_TRY(ask(call, RedisStage::write));
  if (answer.at(0).text() != "ok")
    return fail(other_source_error(scope, partition, answer.at(1).number(), answer.at(2).text(),
                                   source_identity));
  return position_in(answer.at(1).text());
}

Result<Position> RedisStore::position(std::string_view scope, std::string_view partition) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  const RedisAnswer answer = ONCE_TRY(
      ask(command({"HGET", books().key("positions", scope), partition}), RedisStage::read));
  if (answer.is_nil()) return Position{};
  return position_in(answer.text());
}

Result<std::unique_ptr<Store>> open_redis_store(std::string_view url) {
  return RedisStore::open(url, {});
}

}  // namespace once
