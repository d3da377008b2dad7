// SPDX-License-Identifier: Apache-2.0
#pragma once

// The conformance suite of a store. An adapter includes this file and instantiates StoreSuite:
//
//   INSTANTIATE_TEST_SUITE_P(Memory, StoreSuite, ::testing::Values(StoreFactory{...}));
//   INSTANTIATE_TEST_SUITE_P(Memory, RepairSuite, ::testing::Values(StoreFactory{...}));
#include "conformance/store_suite_claims.h"
#include "conformance/store_suite_corrections.h"
#include "conformance/store_suite_deferrals.h"
#include "conformance/store_suite_ledger.h"
#include "conformance/store_suite_outbox.h"
#include "conformance/store_suite_position.h"
#include "conformance/store_suite_progress.h"
#include "conformance/store_suite_records.h"
#include "conformance/store_suite_repairs.h"
#include "conformance/store_suite_threads.h"
