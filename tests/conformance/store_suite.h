// SPDX-License-Identifier: Apache-2.0
#pragma once

// The conformance suite of a store. An adapter includes this file and instantiates StoreSuite:
//
//   INSTANTIATE_TEST_SUITE_P(Memory, StoreSuite, ::testing::Values(StoreFactory{...}));
#include "conformance/store_suite_claims.h"
#include "conformance/store_suite_ledger.h"
#include "conformance/store_suite_outbox.h"
#include "conformance/store_suite_position.h"
#include "conformance/store_suite_threads.h"
