// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/error.h"

#include <gtest/gtest.h>

namespace once {
namespace {

struct Case {
  unsigned code;
  SqlStage stage;
  Remedy remedy;
  std::string_view tag;
  std::string_view state = "HY000";
  bool goes_on = false;
};

TEST(MysqlError, every_number_has_its_remedy) {
  constexpr auto statement = SqlStage::statement;
  for (const Case& known : {
           Case{2002, SqlStage::open, Remedy::retry, "away"},
           {2006, statement, Remedy::retry, "away"},
           {2013, statement, Remedy::retry, "away"},
           {2013, SqlStage::commit, Remedy::recheck, "lost"},
           {1053, SqlStage::commit, Remedy::recheck, "lost"},
           {1927, statement, Remedy::retry, "away"},
           {1205, statement, Remedy::retry, "conflict"},
           {1213, statement, Remedy::retry, "conflict"},
           {1213, SqlStage::commit, Remedy::retry, "conflict"},
           {1114, statement, Remedy::retry, "full"},
           {1040, SqlStage::open, Remedy::retry, "exhausted"},
           {1045, SqlStage::open, Remedy::stop, "denied"},
           {1317, statement, Remedy::retry, "timeout", "70100"},
           {1969, statement, Remedy::retry, "timeout", "70100"},
           {3024, statement, Remedy::retry, "timeout"},
           // By SIGNAL, on a connection that is there.
           {2013, statement, Remedy::retry, "raised", "HY000", true},
           {1053, statement, Remedy::retry, "raised", "HY000", true},
           {1927, statement, Remedy::retry, "raised", "HY000", true},
           {1142, statement, Remedy::stop, "denied"},
           {1290, statement, Remedy::stop, "denied"},
           {1049, SqlStage::open, Remedy::stop, "missing"},
           {1062, statement, Remedy::park, "constraint"},
           {1406, statement, Remedy::park, "constraint"},
           {4025, statement, Remedy::park, "constraint"},
           // What depends on the values of one message: its rows, its triggers, its functions.
           {1242, statement, Remedy::park, "constraint", "21000"},
           {1172, statement, Remedy::park, "constraint", "42000"},
           {1329, statement, Remedy::park, "constraint", "02000"},
           {1339, statement, Remedy::park, "constraint", "20000"},
           {1321, statement, Remedy::park, "constraint", "2F005"},
           {1365, statement, Remedy::park, "constraint", "22012"},
           {1369, statement, Remedy::park, "constraint", "44000"},
           {1411, statement, Remedy::park, "constraint"},
           {1644, statement, Remedy::park, "constraint", "45000"},
           {1644, statement, Remedy::park, "constraint", "SHOP1"},
           {3140, statement, Remedy::park, "constraint", "22032"},
           {3141, statement, Remedy::park, "constraint", "22032"},
           {3143, statement, Remedy::park, "constraint", "42000"},
           {3156, statement, Remedy::park, "constraint", "22018"},
           {3688, statement, Remedy::park, "constraint"},
           {1139, statement, Remedy::park, "constraint", "42000"},
           {4038, statement, Remedy::park, "constraint"},
           {9999, statement, Remedy::park, "constraint", "22999"},
           // SIGNAL with a number of the user's, whatever that number says otherwise.
           {31001, statement, Remedy::park, "constraint", "45000"},
           {1205, statement, Remedy::park, "constraint", "45000"},
           {1927, statement, Remedy::park, "constraint", "45123"},
           // What does not.
           {31001, statement, Remedy::stop, "sql"},
           {1052, statement, Remedy::stop, "sql", "23000"},
           {1136, statement, Remedy::stop, "sql", "21S01"},
           {1241, statement, Remedy::stop, "sql", "21000"},
           {1305, statement, Remedy::stop, "sql", "42000"},
           {1146, statement, Remedy::stop, "sql"},
           {1064, statement, Remedy::stop, "sql"},
           {1399, statement, Remedy::stop, "sql"},
           {1030, statement, Remedy::stop, "io"},
       }) {
    const Error error = error_from_mysql({known.code, known.state, "native", known.goes_on},
                                         known.stage, "here", "work");
    EXPECT_EQ(error.cause, known.goes_on ? Cause::statement : Cause::other) << known.code;
    EXPECT_EQ(error.remedy, known.remedy) << known.code;
    EXPECT_EQ(error.tag, known.tag) << known.code;
    EXPECT_NE(error.text.find("here: cannot work: native"), std::string::npos) << error.text;
  }
}

TEST(MysqlError, a_full_disk_is_waited_for_whatever_its_number) {
  constexpr std::string_view native = "Got error 28 \"No space left on device\" from engine";
  for (const unsigned code : {3u, 1026u, 1030u}) {
    const Error refused = error_from_mysql({code, {}, native}, SqlStage::statement, "here", "work");
    EXPECT_EQ(refused.remedy, Remedy::retry) << code;
    EXPECT_EQ(refused.tag, "full") << code;
    EXPECT_EQ(error_from_mysql({code, {}, native}, SqlStage::commit, "here", "commit").remedy,
              Remedy::recheck)
        << code;
  }
}

TEST(MysqlError, a_server_that_cannot_be_believed_is_no_server_that_is_away) {
  const auto remedy_of = [](SqlStage stage, std::string_view native) {
    return error_from_mysql({2026, {}, native}, stage, "here", "connect").remedy;
  };
  EXPECT_EQ(remedy_of(SqlStage::open, "certificate verify failed"), Remedy::stop);
  EXPECT_EQ(remedy_of(SqlStage::open, "SSL is required, and not offered"), Remedy::stop);
  EXPECT_EQ(remedy_of(SqlStage::open, "unexpected eof while reading"), Remedy::retry);
  EXPECT_EQ(remedy_of(SqlStage::statement, "unexpected eof while reading"), Remedy::retry);
  EXPECT_EQ(remedy_of(SqlStage::commit, "unexpected eof while reading"), Remedy::recheck);
}

}  // namespace
}  // namespace once
