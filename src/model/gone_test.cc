// SPDX-License-Identifier: Apache-2.0
#include "model/gone.h"

#include <gtest/gtest.h>

namespace once {
namespace {

Error gone(const char* text) { return {Remedy::stop, "gone", text}; }

Error in_other_words(Error error) {
  error.text = "p.toml: the source cannot go on";
  return error;
}

// Whoever passes an error on may write its text anew; what helps stays the same.
TEST(Gone, the_commands_are_found_by_data_and_not_by_the_text) {
  const Error ended = with_way_on(in_other_words(ends_before_error("a ends at 7/0", 5, 99)));
  EXPECT_NE(ended.text.find("--partition 'a ends at 7/0' --to 5 "), std::string::npos)
      << ended.text;
  const Error deleted = with_way_on(in_other_words(forgotten_error("t/0", 3, 7)));
  EXPECT_NE(deleted.text.find("--to first --reason 'messages were deleted'"), std::string::npos);
  const Error replaced = with_way_on(in_other_words(replaced_error("t/0", 3)));
  EXPECT_NE(replaced.text.find("--to first --reason 'the topic is another one'"),
            std::string::npos);
}

TEST(Gone, a_source_names_no_command_and_a_pipeline_does) {
  for (const Error& bare :
       {forgotten_error("t/0", 3, 7), ends_before_error("t/0", 5, 99), replaced_error("t/0", 3)}) {
    EXPECT_EQ(bare.text.find("once "), std::string::npos) << bare.text;
    const Error whole = with_way_on(bare);
    EXPECT_TRUE(whole.text.starts_with(bare.text)) << whole.text;
    EXPECT_NE(whole.text.find(": `once position set --partition t/0 --to first --reason '"),
              std::string::npos)
        << whole.text;
  }
  EXPECT_NE(with_way_on(ends_before_error("t/0", 5, 99)).text.find("--partition t/0 --to 5 "),
            std::string::npos);
}

TEST(Gone, of_other_errors_nothing_is_said) {
  for (const char* text :
       {"data/t/0 has no message 3 any more: the oldest is 7",
        "data/t/0 has no message 3: the log ends at 2", "t was deleted, moved or replaced"})
    EXPECT_EQ(with_way_on(gone(text)), gone(text));
}

}  // namespace
}  // namespace once
