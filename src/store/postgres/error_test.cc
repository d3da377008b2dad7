// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/error.h"

#include <gtest/gtest.h>

namespace once {
namespace {

struct Case {
  std::string_view state;
  SqlStage stage;
  Remedy remedy;
  std::string_view tag;
};

TEST(PostgresError, every_state_has_its_remedy) {
  constexpr auto statement = SqlStage::statement;
  for (const Case& known : {
           Case{"", SqlStage::open, Remedy::retry, "away"},
           {"", statement, Remedy::retry, "away"},
           {"", SqlStage::commit, Remedy::recheck, "lost"},
           {"08006", statement, Remedy::retry, "away"},
           {"08006", SqlStage::commit, Remedy::recheck, "lost"},
           {"57P01", SqlStage::commit, Remedy::recheck, "lost"},
           {"57P03", SqlStage::open, Remedy::retry, "away"},
           {"08001", SqlStage::open, Remedy::stop, "denied"},
           {"08001", statement, Remedy::retry, "away"},
           {"40001", statement, Remedy::retry, "conflict"},
           {"40001", SqlStage::commit, Remedy::retry, "conflict"},
           {"40003", statement, Remedy::recheck, "lost"},
           {"40003", SqlStage::commit, Remedy::recheck, "lost"},
           {"40P01", statement, Remedy::retry, "conflict"},
           {"55P03", statement, Remedy::retry, "conflict"},
           {"53100", statement, Remedy::retry, "full"},
           {"53300", SqlStage::open, Remedy::retry, "exhausted"},
           {"23505", statement, Remedy::park, "constraint"},
           {"23514", SqlStage::commit, Remedy::park, "constraint"},
           {"22003", statement, Remedy::park, "constraint"},
           {"22021", statement, Remedy::park, "constraint"},
           {"25006", statement, Remedy::stop, "denied"},
           {"28P01", SqlStage::open, Remedy::stop, "denied"},
           {"42501", statement, Remedy::stop, "denied"},
           {"3D000", SqlStage::open, Remedy::stop, "missing"},
           {"42P01", statement, Remedy::stop, "sql"},
           {"42601", statement, Remedy::stop, "sql"},
           {"58030", statement, Remedy::stop, "io"},
           {"XX000", statement, Remedy::stop, "io"},
           {"XX001", statement, Remedy::stop, "corrupt"},
           {"P0001", statement, Remedy::stop, "sql"},
       }) {
    const Error error = error_from_postgres(known.state, known.stage, "here", "work", "native\n");
    EXPECT_EQ(error.remedy, known.remedy) << known.state;
    EXPECT_EQ(error.tag, known.tag) << known.state;
    EXPECT_EQ(error.text.find('\n'), std::string::npos);
    EXPECT_NE(error.text.find("here: cannot work: native"), std::string::npos) << error.text;
  }
}

}  // namespace
}  // namespace once
