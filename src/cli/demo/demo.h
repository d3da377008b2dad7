// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include "cli/demo/audit.h"
#include "cli/demo/conductor.h"
#include "cli/demo/load.h"
#include "cli/output.h"

namespace once::cli {

// Everything that is known when the demo has ended.
struct DemoResult {
  DemoSettings settings;
  Receipts receipts;
  Audit once;
  Audit naive;
  SceneReport once_report;
  SceneReport naive_report;
  double seconds = 0;

  // Nothing lost, doubled, out of order or out of balance, and nothing set aside.
  bool kept() const { return once.kept() && once.parked == 0; }
};

Json json_of(const DemoResult& result);
Table table_of(const DemoResult& result);

// One sentence on what was proved, or what broke.
std::string verdict_of(const DemoResult& result);

}  // namespace once::cli
