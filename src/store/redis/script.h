// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "store/redis/call.h"

namespace once {

// Everything that writes. Redis does not undo what a script did before it failed: so each of these
// reads and checks first whatever can be wrong (also the type of every key that it will write), and
// from its first write on nothing can fail any more. Memory and disk are looked at by the server
// before the first write, and not again.
namespace redis_scripts {

// A script with the functions that all of them may use before it.
RedisScript made_of(std::string_view text);

extern const RedisScript commit;
extern const RedisScript take;
extern const RedisScript found_store;
extern const RedisScript describe_scope;  // writes nothing: a read that no write comes between

extern const RedisScript move_horizon;
extern const RedisScript set_horizon;
extern const RedisScript release_horizon;
extern const RedisScript sweep_ledger;
extern const RedisScript sweep_claims;

extern const RedisScript assign_routes;
extern const RedisScript remove_sent;
extern const RedisScript park_row;
extern const RedisScript restart_destination;
extern const RedisScript set_position;

extern const RedisScript force_id;
extern const RedisScript drop_scope;
extern const RedisScript replay;
extern const RedisScript drop;

extern const RedisScript due_messages;  // writes nothing, like the next
extern const RedisScript due_behind;
extern const RedisScript hasten;
extern const RedisScript abandon;

extern const RedisScript claim;
extern const RedisScript renew_claims;
extern const RedisScript change_claims;
extern const RedisScript write_claims;
extern const RedisScript log_operation;

}  // namespace redis_scripts
}  // namespace once
