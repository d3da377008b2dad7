// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/transaction.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace once {

class ClaimStore;
class Outbox;
class Records;
class Repairs;

struct StoreTraits {
  // What a commit survives: the death of the process, or a power cut.
  enum class Durability : std::uint8_t { none, process, power };

  std::string name;  // for people: "sqlite:shop.db"; never holds a secret
  Durability durability = Durability::none;
  bool sql = false;
  bool key_value = false;
  bool claims = false;  // for effects outside the store
  // Made with the store's schema, never changed, copied with a backup: two stores that were made
  // separately never have the same. Relays send under it, so that no destination confuses them.
  std::string identity = {};
};

struct Forgotten {
  std::size_t rows = 0;
  bool more = false;  // the limit was reached: call again
};

// Where effects, ledger, positions and outbox live together. Thread-safe: every transaction has
// a connection of its own. The store makes and migrates its own schema when it is opened, and
// refuses settings that cannot keep what `traits` promises.
class Store {
 public:
  virtual ~Store() = default;
  virtual StoreTraits traits() const = 0;

  // `scope` says who remembers: one name per consumer purpose, tenant included; never empty.
  [[nodiscard]] virtual Result<std::unique_ptr<Transaction>> begin(std::string_view scope) = 0;

  // Makes the caller the owner of (scope, partition): its fence is larger than all before it, and
  // the transactions of earlier owners can no longer advance. Durable when it returns. The fence is
  // at least the store's clock in milliseconds, so that a store that was restored from a backup
  // does not give one again that it gave before. Fences are not consecutive.
  // `source_identity` is that of the topic (SourceTraits::identity; empty: unknown) and is kept
  // with the position: a position of another topic is an error with the tag "gone", and nothing
  // is changed.
  [[nodiscard]] virtual Result<Position> take(std::string_view scope, std::string_view partition,
                                              std::string_view source_identity = {}) = 0;

  // Reads the committed position without taking it.
  [[nodiscard]] virtual Result<Position> position(std::string_view scope,
                                                  std::string_view partition) = 0;

  // Forgets ids born before `horizon_ms`, at most `rows_max` of them, and settled claims likewise.
  // The horizon becomes durable first and never goes back, so that what is being forgotten is
  // `too_old` and never fresh.
  [[nodiscard]] virtual Result<Forgotten> forget(std::string_view scope, std::int64_t horizon_ms,
                                                 std::size_t rows_max) = 0;

  // The other sides of this store; nullptr where it has none.
  virtual Outbox* outbox() { return nullptr; }
  virtual Records* records() { return nullptr; }
  virtual Repairs* repairs() { return nullptr; }
  virtual ClaimStore* claims() { return nullptr; }
};

}  // namespace once
