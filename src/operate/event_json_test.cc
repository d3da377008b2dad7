// SPDX-License-Identifier: Apache-2.0
#include "operate/event_json.h"

#include <gtest/gtest.h>

namespace once::operate {
namespace {

TEST(EventJson, has_what_applies_and_nothing_else) {
  EXPECT_EQ(json_of(Event{.severity = Severity::info,
                          .kind = EventKind::partitions_assigned,
                          .text = "owns orders/0",
                          .subject = "orders/0"})
                .dump(),
            R"({"level":"info","kind":"partitions_assigned","text":"owns orders/0",)"
            R"("subject":"orders/0","count":1})");
  EXPECT_EQ(json_of(Event{.severity = Severity::warning,
                          .kind = EventKind::store_away,
                          .text = "waiting",
                          .tag = "away",
                          .duration_ms = 1000})
                .dump(),
            R"({"level":"warning","kind":"store_away","text":"waiting","tag":"away","count":1,)"
            R"("duration_ms":1000})");
}

TEST(EventJson, people_are_told_how_many_it_stands_for) {
  EXPECT_EQ(text_of({.text = "parked: no id"}), "parked: no id");
  EXPECT_EQ(text_of({.text = "parked: no id", .count = 12}),
            "parked: no id (12 like this since it was last told)");
}

}  // namespace
}  // namespace once::operate
