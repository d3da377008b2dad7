// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/scenes.h"

#include <fmt/format.h>
#include <once/log.h>
#include <once/open.h>
#include <once/outbox.h>

#include <optional>

#include "base/file.h"
#include "cli/demo/audit.h"
#include "cli/demo/shop.h"

namespace once::cli {
namespace {

using Ends = std::map<std::string, std::int64_t>;

// How far a consumer is behind: the sum of its positions, and whether all of them are at the end.
struct Reach {
  std::int64_t handled = 0;
  bool complete = true;
};

using PositionOf = std::function<Result<std::int64_t>(const std::string& partition)>;

Result<Reach> reach(const Ends& ends, const PositionOf& position_of) {
  Reach sum;
  for (const auto& [partition, end] : ends) {
    const std::int64_t position = ONCE_TRY(position_of(partition));
    sum.handled += std::max<std::int64_t>(0, position);
    sum.complete = sum.complete && position >= end;
  }
  return sum;
}

PositionOf positions_in(Store& store, std::string_view scope) {
  return [&store, scope](const std::string& partition) -> Result<std::int64_t> {
    return ONCE_TRY(store.position(scope, partition)).offset;
  };
}

PositionOf offsets_in(Database& database, std::string consumer) {
  return [&database,
          consumer = std::move(consumer)](const std::string& partition) -> Result<std::int64_t> {
    const Rows found = ONCE_TRY(database.query(
        "SELECT offset FROM offsets WHERE consumer = ? AND partition = ?", {consumer, partition}));
    return found.empty() ? -1 : integer(found[0][0]);
  };
}

// Looks at a consumer of orders and, once that is through, at the consumer of what it causes.
class Lookout {
 public:
  Lookout(std::string directory, std::string_view next_topic, PositionOf first, PositionOf next,
          std::function<Result<bool>()> nothing_between)
      : directory_(std::move(directory)),
        next_topic_(next_topic),
        first_(std::move(first)),
        next_(std::move(next)),
        nothing_between_(std::move(nothing_between)) {}

  Result<Sight> look(bool gate_ended) {
    if (gate_ended && !first_ends_) first_ends_ = ONCE_TRY(ends_of(directory_, orders_topic));
    static const Ends all{{"orders/0", 0},
                          {"orders/1", 0}};  // until the gate has ended, only to see them move
    const Reach orders = ONCE_TRY(reach(first_ends_ ? *first_ends_ : all, first_));
    Sight sight{orders.handled, false};
    if (!first_ends_ || !orders.complete) return sight;
    if (!ONCE_TRY(nothing_between_())) return sight;
    ONCE_TRY(see_next_ends());
    sight.done = ONCE_TRY(reach(next_ends_, next_)).complete;
    return sight;
  }

 private:
  // The topic is read again only when it has grown.
  Status see_next_ends() {
    std::int64_t end = 0;
    const TopicInfo info = ONCE_TRY(describe_topic(directory_, next_topic_));
    for (const PartitionInfo& partition : info.partitions) end += partition.end_offset;
    if (end == next_end_) return {};
    next_ends_ = ONCE_TRY(ends_of(directory_, next_topic_));
    next_end_ = end;
    return {};
  }

  const std::string directory_;
  const std::string next_topic_;
  PositionOf first_;
  PositionOf next_;
  std::function<Result<bool>()> nothing_between_;
  std::optional<Ends> first_ends_;
  Ends next_ends_;
  std::int64_t next_end_ = -1;
};

}  // namespace

Status prepare_stage(const DemoSettings& settings) {
  TopicOptions two_partitions;
  two_partitions.partitions = 2;
  two_partitions.gaps = GapPolicy::hold;
  ONCE_TRY(create_topic(settings.directory, std::string(orders_topic), two_partitions));
  ONCE_TRY(create_topic(settings.directory, std::string(payments_topic), {}));
  ONCE_TRY(create_topic(settings.directory, std::string(naive_payments_topic), {}));

  // The first file makes the directory of the journals.
  const Json notes = {{"seed", settings.seed},
                      {"messages", settings.messages},
                      {"duplicates", settings.duplicates},
                      {"kills", settings.kills}};
  ONCE_TRY(
      replace_file(system_files(), settings.directory + "/journal/settings.json", line_of(notes)));

  auto store = ONCE_TRY(open_sqlite_store(settings.directory + "/shop.db"));
  auto transaction = ONCE_TRY(store->begin("shop.setup"));
  for (const std::string& statement : shop_schema())
    ONCE_TRY(transaction->sql()->execute(statement));
  ONCE_TRY(transaction->commit());

  Database naive = ONCE_TRY(Database::open(settings.directory + "/naive.db"));
  for (const std::string& statement : shop_schema()) ONCE_TRY(naive.run(statement));
  ONCE_TRY(
      naive.run("CREATE TABLE processed (consumer TEXT, id TEXT, PRIMARY KEY (consumer, id))"));
  return naive.run(
      "CREATE TABLE offsets (consumer TEXT, partition TEXT, offset INTEGER, "
      "PRIMARY KEY (consumer, partition))");
}

Scene once_scene(const DemoSettings& settings, Store& store) {
  const auto lookout = std::make_shared<Lookout>(
      settings.directory, payments_topic, positions_in(store, orders_scope),
      positions_in(store, points_scope),
      [&store]() -> Result<bool> { return ONCE_TRY(store.outbox()->destinations()).empty(); });
  Scene scene;
  scene.title = "Once";
  scene.roles = {"gate", "orders", "relay", "points"};
  scene.gate = "gate";
  for (const std::string& role : scene.roles) scene.as[role] = role;
  scene.total = static_cast<std::int64_t>(Load(settings).sends().size());
  scene.look = [lookout](bool gate_ended) { return lookout->look(gate_ended); };
  return scene;
}

Scene naive_scene(const DemoSettings& settings, Database& database, std::int64_t total) {
  const auto lookout = std::make_shared<Lookout>(
      settings.directory, naive_payments_topic, offsets_in(database, "naive-orders"),
      offsets_in(database, "naive-points"), []() -> Result<bool> { return true; });
  Scene scene;
  scene.title = "naive";
  scene.roles = {"naive-orders", "naive-points"};
  scene.as = {{"gate", "naive-orders"},
              {"orders", "naive-orders"},
              {"relay", "naive-orders"},
              {"points", "naive-points"}};
  scene.total = total;
  scene.look = [lookout](bool) { return lookout->look(true); };
  scene.fenced = false;
  return scene;
}

}  // namespace once::cli
