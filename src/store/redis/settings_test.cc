// SPDX-License-Identifier: Apache-2.0
#include "store/redis/settings.h"

#include <gtest/gtest.h>

namespace once {
namespace {

using Durability = StoreTraits::Durability;

struct Case {
  std::array<std::string, 5> values;
  Durability kept;     // the strongest that is not refused
  std::string blamed;  // for what is stronger
  bool never = false;
};

TEST(RedisSettings, H22_what_is_not_kept_is_refused_by_name) {
  for (const Case& known : {
           Case{{"yes", "always", "no", "0", "noeviction"}, Durability::power, ""},
           {{"yes", "always", "no", "0", "allkeys-lru"}, Durability::power, ""},
           {{"yes", "always", "no", "100", "noeviction"}, Durability::power, ""},
           {{"yes", "always", "yes", "0", "noeviction"},
            Durability::process,
            "no-appendfsync-on-rewrite"},
           {{"yes", "no", "no", "0", "noeviction"}, Durability::process, "appendfsync"},
           {{"yes", "everysec", "no", "0", "noeviction"}, Durability::none, "appendfsync"},
           {{"no", "always", "no", "0", "noeviction"}, Durability::none, "appendonly"},
           {{"yes", "always", "no", "100", "allkeys-lru"},
            Durability::none,
            "maxmemory-policy",
            true},
           {{"yes", "always", "no", "100", "volatile-ttl"},
            Durability::none,
            "maxmemory-policy",
            true},
       }) {
    RedisSettings settings;
    settings.values = known.values;
    for (const Durability asked : {Durability::none, Durability::process, Durability::power}) {
      const Status checked = check_settings(settings, asked, "here");
      EXPECT_EQ(checked.has_value(), asked <= known.kept && !known.never) << known.blamed;
      if (checked) continue;
      EXPECT_EQ(checked.error().tag, "unsafe");
      EXPECT_NE(checked.error().text.find("here: " + known.blamed), std::string::npos)
          << checked.error().text;
    }
  }
}

TEST(RedisSettings, role_and_cluster_are_read_from_info) {
  RedisSettings settings;
  settings.take_info("# Replication\r\nrole:master\r\n# Cluster\r\ncluster_enabled:0\r\n");
  EXPECT_FALSE(settings.replica);
  EXPECT_FALSE(settings.clustered);
  settings.take_info("# Replication\r\nrole:slave\r\n# Cluster\r\ncluster_enabled:1\r\n");
  EXPECT_TRUE(settings.replica);
  EXPECT_TRUE(settings.clustered);
}

}  // namespace
}  // namespace once
