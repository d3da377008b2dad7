// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/transaction.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

class ClaimStore;
class Deferrals;
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

// A statement as the database understands it before it is run.
struct StatementShape {
  // One for each parameter and for each column of its rows: the type as the database names it,
  // empty where it does not say.
  std::vector<std::string> parameters = {};
  std::vector<std::string> columns = {};
  std::string unchecked = {};  // why the database could not be asked; empty: it was
};

// Looks at what handlers are going to run, without running it. Writes nothing. Thread-safe.
class StatementChecker {
 public:
  virtual ~StatementChecker() = default;

  // Prepares a statement with `?` for its parameters, as a transaction would. An error that is not
  // over by itself is one for every message, whatever its values are.
  [[nodiscard]] virtual Result<StatementShape> prepare(std::string_view statement);
  // Whether the store takes a command (KeyValueTransaction::command) of these words; what comes
  // from a message is empty in them.
  [[nodiscard]] virtual Status check_command(std::span<const std::string> words);
};

inline Result<StatementShape> StatementChecker::prepare(std::string_view) {
  return fail(Remedy::stop, "config", "this store runs no SQL");
}
inline Status StatementChecker::check_command(std::span<const std::string>) {
  return fail(Remedy::stop, "config", "this store has no commands of its own");
}

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
  // `too_old` and never fresh. One that a person has set (Repairs::correct) stays where it is, and
  // only what is below it is forgotten.
  [[nodiscard]] virtual Result<Forgotten> forget(std::string_view scope, std::int64_t horizon_ms,
                                                 std::size_t rows_max) = 0;

  // The other sides of this store; nullptr where it has none.
  virtual Outbox* outbox() { return nullptr; }
  virtual Records* records() { return nullptr; }
  virtual Repairs* repairs() { return nullptr; }
  virtual ClaimStore* claims() { return nullptr; }
  virtual Deferrals* deferrals() { return nullptr; }
  virtual StatementChecker* statement_checker() { return nullptr; }
};

}  // namespace once
