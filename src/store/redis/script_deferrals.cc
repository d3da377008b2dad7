// SPDX-License-Identifier: Apache-2.0
// The scripts of messages that wait; commits put them there and remove them (script.cc).
#include "store/redis/script.h"

namespace once::redis_scripts {

// keys: deferred, due. words: 2 how many. Answers the clock, when the first is due, and those that
// are: numbers, then rows.
const RedisScript due_messages = made_of(R"lua(
local now = digits(now_ms())
local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
local numbers = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, ARGV[2])
local rows = {}
for i, number in ipairs(numbers) do rows[i] = redis.call('HGET', KEYS[1], number) end
return {now, first[2] or '', numbers, rows}
)lua");

// keys: due, order. words: from 2 on orders and numbers. Answers for each the number of the last
// message of the order that waits before it, and in which time that is due, or nothing.
const RedisScript due_behind = made_of(R"lua(
local answers, now = {}, now_ms()
for i = 2, #ARGV, 2 do
  local before = redis.call('ZREVRANGEBYLEX', KEYS[2], '(' .. ARGV[i] .. ':' .. ARGV[i + 1],
    '[' .. ARGV[i] .. ':', 'LIMIT', 0, 1)[1]
  local number = before and before:match('[^:]+$')
  local due = number and redis.call('ZSCORE', KEYS[1], number)
  answers[#answers + 1] = due and {number, digits(math.max(0, due - now))} or {}
end
return answers
)lua");

// keys: deferred, due, operations. words: from 2 on number, id, note.
const RedisScript hasten = made_of(R"lua(
for i = 2, #ARGV, 3 do
  if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 0 then return {'missing', ARGV[i]} end
end
local operation, now = last_number(KEYS[3]), now_ms()
redis.call('ZCARD', KEYS[2])
for i = 2, #ARGV, 3 do
  operation = operation + 1
  local row = redis.call('HGET', KEYS[1], ARGV[i])
  local attempts, before, due, rest = row:match('^(%d+) (%d+) (%d+) (.*)$')
  due = digits(math.min(due, now))
  redis.call('HSET', KEYS[1], ARGV[i], table.concat({attempts, before, due, rest}, ' '))
  redis.call('ZADD', KEYS[2], due, ARGV[i])
  log(KEYS[3], operation, 'hasten', ARGV[i + 1], ARGV[i + 2])
end
return {'ok'}
)lua");

// keys: deferred, due, order, operations, ledger. words: 2 reason in the ledger; then number, id as
// it is kept, id, note.
const RedisScript abandon = made_of(R"lua(
for i = 3, #ARGV, 4 do
  if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 0 then return {'missing', ARGV[i]} end
end
local operation = last_number(KEYS[4])
redis.call('ZCARD', KEYS[2])
redis.call('ZCARD', KEYS[3])
redis.call('HLEN', KEYS[5])
for i = 3, #ARGV, 4 do
  operation = operation + 1
  local token = deferred_parts(redis.call('HGET', KEYS[1], ARGV[i]))
  redis.call('HDEL', KEYS[1], ARGV[i])
  redis.call('ZREM', KEYS[2], ARGV[i])
  redis.call('ZREM', KEYS[3], token .. ':' .. ARGV[i])
  local row = redis.call('HGET', KEYS[5], ARGV[i + 1])
  if row and row:byte(1) % 16 == 5 then
    local head = 26 + row:byte(26) + (row:byte(1) >= 16 and 17 or 0)
    redis.call('HSET', KEYS[5], ARGV[i + 1],
      string.char(row:byte(1) - 1) .. row:sub(2, head) .. ARGV[2])
  end
  log(KEYS[4], operation, 'abandon', ARGV[i + 2], ARGV[i + 3])
end
return {'ok'}
)lua");

}  // namespace once::redis_scripts
