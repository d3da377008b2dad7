// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include "operate/failure.h"

namespace once::cli {

// What the shell is told; docs/cli.md explains each. Scripts branch on these, so a number never
// changes its meaning.
enum ExitCode : int {
  exit_ok = 0,
  exit_broken = 1,         // a check found that the promise was broken: something lost or doubled
  exit_usage = 2,          // a wrong flag, URL or input line
  exit_stop = 3,           // a person has to act: misconfigured, fenced, busy, denied, foreign
  exit_retry = 4,          // nothing happened: the same command may be run again
  exit_recheck = 5,        // it may have happened: look before running it again
  exit_park = 6,           // an input message can never succeed
  exit_corrupt = 7,        // stored data is damaged
  exit_not_known = 8,      // a question was answered: the store knows no such id or number
  exit_interrupted = 130,  // ended by Ctrl-C
};

int exit_code_of(const Error& error);

// The remedy and the tag decide about the exit code; these make errors of the command line itself.
using operate::fail_input;
using operate::fail_not_known;
using operate::fail_usage;

}  // namespace once::cli
