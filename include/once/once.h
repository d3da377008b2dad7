// SPDX-License-Identifier: Apache-2.0
#pragma once

// The whole contract. Start with pipeline.h; a guide to the headers is in include/once/README.md.
#include <once/claims.h>
#include <once/clock.h>
#include <once/effect.h>
#include <once/handler.h>
#include <once/identity.h>
#include <once/log.h>
#include <once/message.h>
#include <once/observe.h>
#include <once/open.h>
#include <once/outbox.h>
#include <once/outcome.h>
#include <once/pipeline.h>
#include <once/producer.h>
#include <once/records.h>
#include <once/result.h>
#include <once/sink.h>
#include <once/source.h>
#include <once/sql.h>
#include <once/store.h>
#include <once/strategies.h>
#include <once/transaction.h>
