// SPDX-License-Identifier: Apache-2.0
#include "cli/exit_code.h"

namespace once::cli {

int exit_code_of(const Error& error) {
  if (error.tag == "corrupt") return exit_corrupt;
  if (error.tag == "usage" || error.tag == "url" || error.tag == "input") return exit_usage;
  if (error.tag == "broken") return exit_broken;
  if (error.tag == "not_known") return exit_not_known;
  if (error.tag == "interrupted") return exit_interrupted;
  switch (error.remedy) {
    case Remedy::retry: return exit_retry;
    case Remedy::recheck: return exit_recheck;
    case Remedy::park: return exit_park;
    case Remedy::stop: return exit_stop;
  }
  return exit_stop;
}

}  // namespace once::cli
