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
           {"08001", statement, Remedy::retry, "away"},
           {"40001", statement, Remedy::retry, "conflict"},
           {"40001", SqlStage::commit, Remedy::retry, "conflict"},
           {"40003", statement, Remedy::recheck, "lost"},
           {"40003", SqlStage::commit, Remedy::recheck, "lost"},
           {"40P01", statement, Remedy::retry, "conflict"},
           {"55P03", statement, Remedy::retry, "conflict"},
           {"57014", statement, Remedy::retry, "timeout"},
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
           // What depends on the values of one message: its rows, its triggers, its functions.
           {"P0001", statement, Remedy::park, "constraint"},
           {"P0001", SqlStage::commit, Remedy::park, "constraint"},
           {"P0002", statement, Remedy::park, "constraint"},
           {"P0003", statement, Remedy::park, "constraint"},
           {"P0004", statement, Remedy::park, "constraint"},
           {"09000", statement, Remedy::park, "constraint"},
           {"20000", statement, Remedy::park, "constraint"},
           {"21000", statement, Remedy::park, "constraint"},
           {"27000", statement, Remedy::park, "constraint"},
           {"2F005", statement, Remedy::park, "constraint"},
           {"38000", statement, Remedy::park, "constraint"},
           {"39004", statement, Remedy::park, "constraint"},
           {"44000", statement, Remedy::park, "constraint"},
           {"45000", statement, Remedy::park, "constraint"},
           {"54000", statement, Remedy::park, "constraint"},
           {"SHOP1", statement, Remedy::park, "constraint"},
           // What does not.
           {"2D000", statement, Remedy::stop, "sql"},
           {"2F002", statement, Remedy::stop, "sql"},
           {"3F000", statement, Remedy::stop, "sql"},
           {"0A000", statement, Remedy::stop, "sql"},
           {"55000", statement, Remedy::stop, "sql"},
           {"HV000", statement, Remedy::stop, "sql"},
       }) {
    const Error error = error_from_postgres(known.state, known.stage, "here", "work", "native\n");
    EXPECT_EQ(error.remedy, known.remedy) << known.state;
    EXPECT_EQ(error.tag, known.tag) << known.state;
    EXPECT_EQ(error.text.find('\n'), std::string::npos);
    EXPECT_NE(error.text.find("here: cannot work: native"), std::string::npos) << error.text;
  }
}

// RAISE takes any state; the severity and the connection tell that only the statement failed.
TEST(PostgresError, what_a_function_says_of_a_connection_that_is_there_is_about_its_statement) {
  for (const std::string_view state : {"08006", "57P01", "57P03", "40003"}) {
    const Error error =
        error_from_postgres(state, SqlStage::statement, "here", "work", "native", true);
    EXPECT_EQ(error.remedy, Remedy::retry) << state;
    EXPECT_EQ(error.tag, "raised") << state;
    EXPECT_EQ(error.cause, Cause::statement) << state;
  }
  for (const std::string_view state : {"42501", "0A000", "XX000", "40001", "57014"}) {
    const auto cause_of = [&](SqlStage stage, bool goes_on) {
      return error_from_postgres(state, stage, "here", "work", "native", goes_on).cause;
    };
    EXPECT_EQ(cause_of(SqlStage::statement, true), Cause::statement) << state;
    EXPECT_EQ(cause_of(SqlStage::commit, true), Cause::handler) << state;
    EXPECT_EQ(cause_of(SqlStage::statement, false), Cause::other) << state;
  }
  EXPECT_EQ(error_from_postgres("XX001", SqlStage::statement, "here", "work", "native", true).cause,
            Cause::other);
}

TEST(PostgresError, a_connection_that_is_not_made_is_waited_for_only_if_that_can_help) {
  struct Refused {
    std::string_view native;
    Remedy remedy;
    std::string_view tag;
  };
  for (const Refused& known : {
           Refused{"connection to server at \"db\", port 1 failed: Connection refused",
                   Remedy::retry, "away"},
           {"could not translate host name \"db\" to address: Name or service not known",
            Remedy::retry, "away"},
           {"timeout expired", Remedy::retry, "away"},
           {"server closed the connection unexpectedly", Remedy::retry, "away"},
           {"received invalid response to SSL negotiation: H", Remedy::retry, "away"},
           {"FATAL:  the database system is starting up", Remedy::retry, "away"},
           {"FATAL:  sorry, too many clients already", Remedy::retry, "exhausted"},
           {"FATAL:  remaining connection slots are reserved", Remedy::retry, "exhausted"},
           {"root certificate file \"/nope\" does not exist", Remedy::stop, "denied"},
           {"server does not support SSL, but SSL was required", Remedy::stop, "denied"},
           {"FATAL:  password authentication failed for user \"u\"", Remedy::stop, "denied"},
           {"FATAL:  role \"u\" does not exist", Remedy::stop, "denied"},
           {"FATAL:  database \"d\" does not exist", Remedy::stop, "missing"},
           {"invalid URI query parameter: \"passwrd\"", Remedy::stop, "config"},
           {"invalid connection option \"passwrd\"", Remedy::stop, "config"},
           {"invalid sslmode value: \"bogus\"", Remedy::stop, "config"},
           {"invalid target_session_attrs value: \"bogus\"", Remedy::stop, "config"},
           {"invalid integer value \"abc\" for connection option \"connect_timeout\"", Remedy::stop,
            "config"},
           {"invalid port number: \"70000\"", Remedy::stop, "config"},
           {"could not parse network address \"notanip\": Name or service not known", Remedy::stop,
            "config"},
           {"could not match 2 host names to 1 hostaddr values", Remedy::stop, "config"},
           {"definition of service \"nope\" not found", Remedy::stop, "config"},
           {"FATAL:  unrecognized configuration parameter \"foo\"", Remedy::stop, "config"},
           {"FATAL:  invalid value for parameter \"client_encoding\": \"bogus\"", Remedy::stop,
            "config"},
       }) {
    const Error error = error_from_connect("here", std::string(known.native) + "\n");
    EXPECT_EQ(error.remedy, known.remedy) << error.text;
    EXPECT_EQ(error.tag, known.tag) << error.text;
    EXPECT_EQ(error.text.find("here: cannot connect: " + std::string(known.native) + "; "), 0u);
  }
}

}  // namespace
}  // namespace once
