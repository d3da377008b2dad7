// SPDX-License-Identifier: Apache-2.0
#include "base/exception.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <system_error>

namespace once {
namespace {

TEST(Exception, means_that_something_is_exhausted_or_that_there_is_a_defect) {
  const Error memory = error_from_exception(std::bad_alloc());
  EXPECT_EQ(memory.tag, "exhausted");
  EXPECT_EQ(memory.remedy, Remedy::retry);
  const Error thread = error_from_exception(
      std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)));
  EXPECT_EQ(thread.tag, "exhausted");
  EXPECT_EQ(thread.remedy, Remedy::retry);
  EXPECT_NE(thread.text.find("thread"), std::string::npos) << thread.text;
  const Error other = error_from_exception(std::logic_error("a defect"));
  EXPECT_EQ(other.tag, "internal");
  EXPECT_EQ(other.remedy, Remedy::recheck);
  EXPECT_EQ(other.text, "a defect");
}

}  // namespace
}  // namespace once
