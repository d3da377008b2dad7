// SPDX-License-Identifier: Apache-2.0
#include "store/redis/script.h"

#include <string>

namespace once::redis_scripts {
namespace {

// What all of them may use. The first argument of each script is added to the server's clock.
// The number of a row in a stream is one more than that of the last row that ever was there, which
// the stream remembers also when it is empty.
constexpr std::string_view tools = R"lua(
local words_max = 2000  -- of one command made by a script; the limit of Lua is some 8000

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
end

local function digits(number) return string.format('%.0f', number) end

local function eight_bytes(number)
  local bytes = ''
  for _ = 1, 8 do
    bytes = string.char(number % 256) .. bytes
    number = math.floor(number / 256)
  end
  return bytes
end

-- By their bytes. The `<` of Lua compares strings as the locale of the server says.
local function is_less(one, other)
  for i = 1, math.min(#one, #other) do
    local a, b = one:byte(i), other:byte(i)
    if a ~= b then return a < b end
  end
  return #one < #other
end

-- A position as position.h keeps it: what tells owners apart, and the rest. One that was written
-- before there was a rest has none.
local function position_at(positions, partition)
  local is = redis.call('HGET', positions, partition) or '-1 0'
  local offset, fence, rest = is:match('^([^ ]+) ([^ ]+) ?(.*)$')
  return offset, fence, rest == '' and '-1 -1 -1 -1 0 ' or rest
end

-- As model/ledger.h does it.
local function next_fence(last)
  return digits(math.max(last + 1, now_ms()))
end

local function last_number(stream)
  local about = redis.pcall('XINFO', 'STREAM', stream)
  if about.err then return redis.call('XLEN', stream) end  -- 0, or it is no stream
  for i = 1, #about, 2 do
    if about[i] == 'last-generated-id' then return tonumber(about[i + 1]:match('^%d+')) end
  end
end

-- A stream is trimmed by whole nodes: it keeps some lines more than it has to.
local function log(stream, number, action, subject, reason)
  redis.call('XADD', stream, 'MAXLEN', '~', 10000, digits(number) .. '-0', 'at', digits(now_ms()),
    'action', action, 'subject', subject, 'reason', reason)
end

local function row_at(stream, number)
  return redis.call('XRANGE', stream, number .. '-0', number .. '-0')[1]
end

-- A deferred message as deferral.h keeps it.
local function deferred_row(attempts, now, due, token, reason, rest)
  return table.concat({attempts, now, due, token, #reason}, ' ') .. ' ' .. reason .. rest
end

-- Its order, and what never changes of it.
local function deferred_parts(row)
  local first, last, token, length = row:find('^%d+ %d+ %d+ (%S+) (%d+) ')
  return token, row:sub(last + 1 + length)
end

-- A server without memory refuses a script's first write if that takes some, and no later one. What
-- forgets or finishes must go through: so this does not take any, and changes nothing.
local function write_also_when_full(key) redis.call('PERSIST', key) end

local function in_pieces(words, work)
  for first = 1, #words, words_max do
    work(unpack(words, first, math.min(first + words_max - 1, #words)))
  end
end
)lua";

}  // namespace

RedisScript made_of(std::string_view text) {
  return RedisScript(std::string(tools) + std::string(text));
}

// keys: 1 scopes, 2 positions, 3 ledger, 4 horizon, 5 parked, 6 operations, 7 destinations,
//       8 deferred, 9 due, 10 order, 11 the last number of a deferred message; then a stream for
//       each destination; the keys that were read; the keys to be written.
// words: 2 scope, 3 the oldest birth of the new ids, then how many there are of each:
//        4 moves (partition, from, to, settled, waiting, `1` if drained, witness in two words;
//        `-1` for what is not set), 5 new ids (id, row), 6 freed ids (id), 7 parked messages
//        (nine fields and values; `at` is added), 8 destinations (name), 9 outbox rows (which
//        destination, five fields and values), 10 reads (`=` and the value, or `-`), 11 writes
//        (`=` and the value, or `-`), 12 commands (last), 13 messages that were due (number,
//        attempts), 14 ids that are had again (id, outcome, row or nothing), 15 changes of deferred
//        messages (number, attempts or `-` if it waits no longer, delay, reason), 16 messages to be
//        deferred (attempts, delay, order, reason, rest), 17 ids that are no longer parked.
const RedisScript commit = made_of(R"lua(
local moves, fresh, freed = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local parked, destinations, rows = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local reads, writes, commands = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local dues, resumed, changes = tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15])
local deferred, unparked = tonumber(ARGV[16]), tonumber(ARGV[17])
local first_fresh = 18 + 8 * moves
local first_freed = first_fresh + 2 * fresh
local first_parked = first_freed + freed
local first_destination = first_parked + 18 * parked
local first_row = first_destination + destinations
local first_read = first_row + 11 * rows
local first_write = first_read + reads
local first_due = first_write + writes
local first_resumed = first_due + 2 * dues
local first_change = first_resumed + 3 * resumed
local first_deferred = first_change + 4 * changes
local first_unparked = first_deferred + 5 * deferred
local first_key = 12 + destinations

-- Does everything still hold that this transaction has seen?
local moved = {}
for i = 18, first_fresh - 1, 8 do
  local offset, fence, rest = position_at(KEYS[2], ARGV[i])
  local is = offset .. ' ' .. fence
  if is ~= ARGV[i + 1] then return {'fenced', ARGV[i], is} end
  local settled, drained, witness, identity =
    rest:match('^([^ ]+) [^ ]+ ([^ ]+) ([^ ]+ [^ ]+) (.*)$')
  if tonumber(ARGV[i + 3]) > tonumber(settled) then settled = ARGV[i + 3] end
  if ARGV[i + 5] == '1' then drained = digits(now_ms()) end
  if tonumber(ARGV[i + 6]) >= 0 then witness = ARGV[i + 6] .. ' ' .. ARGV[i + 7] end
  moved[#moved + 1] = ARGV[i]
  moved[#moved + 1] = table.concat({ARGV[i + 2], fence, settled, ARGV[i + 4], drained, witness,
    identity}, ' ')
end
if fresh + freed > 0 then
  local horizon = redis.call('GET', KEYS[4])
  if horizon and is_less(ARGV[3], horizon) then return {'conflict', 'the horizon'} end
  local ids = {}
  for i = first_fresh, first_freed - 1, 2 do ids[#ids + 1] = ARGV[i] end
  for i = first_freed, first_parked - 1 do ids[#ids + 1] = ARGV[i] end
  local taken
  in_pieces(ids, function(...)
    for _, row in ipairs(redis.call('HMGET', KEYS[3], ...)) do taken = taken or row end
  end)
  if taken then return {'conflict', 'an id'} end
end
for i = first_due, first_resumed - 1, 2 do
  local row = redis.call('HGET', KEYS[8], ARGV[i])
  if not row or row:match('^%d+') ~= ARGV[i + 1] then
    return {'conflict', 'a message that waits'}
  end
end
for i = first_resumed, first_change - 1, 3 do
  local row = redis.call('HGET', KEYS[3], ARGV[i])
  if not row or row:byte(1) % 16 ~= tonumber(ARGV[i + 1]) then return {'conflict', 'an id'} end
end
for i = 0, reads - 1 do
  local value = redis.call('GET', KEYS[first_key + i])
  if (value and '=' .. value or '-') ~= ARGV[first_read + i] then
    return {'conflict', KEYS[first_key + i]}
  end
end

-- Is everything of the kind as which it will be written?
for i = first_key + reads, first_key + reads + writes - 1 do
  local size = redis.pcall('STRLEN', KEYS[i])
  if type(size) == 'table' then return {'type', i - first_key - reads} end
end
redis.call('SCARD', KEYS[1])
local operation, number, numbers = 0, 0, {}
if parked > 0 then
  operation, number = last_number(KEYS[6]), last_number(KEYS[5])
end
if rows > 0 then redis.call('SCARD', KEYS[7]) end
for i = 1, destinations do numbers[i] = last_number(KEYS[11 + i]) end
local last_deferred, freed_rows = 0, {}
if changes + deferred > 0 then
  redis.call('HLEN', KEYS[8])
  redis.call('ZCARD', KEYS[9])
  redis.call('ZCARD', KEYS[10])
  last_deferred = tonumber(redis.call('GET', KEYS[11]) or '0')
end
if unparked > 0 then
  local ids, from = {}, '-'
  for i = first_unparked, first_unparked + unparked - 1 do ids[ARGV[i]] = true end
  repeat
    local page = redis.call('XRANGE', KEYS[5], from, '+', 'COUNT', 1000)
    for _, row in ipairs(page) do
      if ids[row[2][12]] then freed_rows[#freed_rows + 1] = row[1] end
    end
    if #page > 0 then from = digits(page[#page][1]:match('^%d+') + 1) .. '-0' end
  until #page < 1000
end

-- Commands of the handler can fail. Each notes before it runs how it is undone: one that fails, or
-- has another reply than expected, undoes itself and those before it, and nothing has happened.
local undo = {}
local function value_before(key, get, set, remove)
  local value = redis.call(unpack(get))
  undo[#undo + 1] = function()
    if value then redis.call(unpack(set(value))) else redis.call(unpack(remove)) end
  end
end
local function note_string(key)
  value_before(key, {'GET', key}, function(v) return {'SET', key, v} end, {'DEL', key})
end
local function note_field(key, field)
  value_before(key, {'HGET', key, field}, function(v) return {'HSET', key, field, v} end,
    {'HDEL', key, field})
end
local function note_score(key, member)
  value_before(key, {'ZSCORE', key, member}, function(v) return {'ZADD', key, v, member} end,
    {'ZREM', key, member})
end
local function note_member(key, member)
  local is_there = redis.call('SISMEMBER', key, member)
  undo[#undo + 1] = function() redis.call(is_there == 1 and 'SADD' or 'SREM', key, member) end
end
local function note_nothing() end
local notes = {
  SET = note_string, SETNX = note_string, INCRBY = note_string, DECRBY = note_string,
  INCRBYFLOAT = note_string,
  HSET = note_field, HSETNX = note_field, HINCRBY = note_field, HINCRBYFLOAT = note_field,
  HDEL = note_field,
  SADD = note_member, SREM = note_member,
  ZADD = function(key, _, member) note_score(key, member) end,
  ZINCRBY = function(key, _, member) note_score(key, member) end,
  ZREM = note_score,
  EXPIRE = note_nothing, PEXPIRE = note_nothing, PERSIST = note_nothing,
}
local function run(name, key, ...)
  local left = redis.call('PTTL', key)
  if name == 'EXPIRE' or name == 'PEXPIRE' then
    local time = tonumber((...))
    if not time or time < 1 then error({err = 'ERR a time to live is at least 1'}) end
  end
  -- Runs last, when the key is there again.
  undo[#undo + 1] = function()
    if left > 0 then redis.call('PEXPIRE', key, left) end
    if left == -1 then redis.call('PERSIST', key) end
  end
  if notes[name] then notes[name](key, ...) end
  local reply = redis.call(name, key, ...)
  if name == 'LPUSH' then undo[#undo + 1] = function() redis.call('LPOP', key) end end
  if name == 'RPUSH' then undo[#undo + 1] = function() redis.call('RPOP', key) end end
  return reply
end
local function text_of_error(problem)
  if type(problem) == 'table' then return problem.err or 'ERR' end
  return tostring(problem)
end
local function is_expected(reply, is, at_least)
  local number = tonumber(reply)
  if is ~= '' and number ~= tonumber(is) then return false end
  return at_least == '' or (number ~= nil and number >= tonumber(at_least))
end
local at = first_unparked + unparked
for i = 1, commands do
  local count, key = tonumber(ARGV[at]), KEYS[first_key + reads + writes + tonumber(ARGV[at + 1])]
  local name, is, at_least = ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local done, reply = pcall(run, name, key, unpack(ARGV, at + 5, at + 4 + count))
  if done and type(reply) == 'table' and reply.ok then reply = reply.ok end
  if not done or not is_expected(reply, is, at_least) then
    for k = #undo, 1, -1 do undo[k]() end
    if not done then return {'command', i - 1, 'error', text_of_error(reply)} end
    return {'command', i - 1, 'reply', tostring(reply)}
  end
  at = at + 5 + count
end

-- From here on nothing can fail.
if moves + fresh + parked + deferred > 0 then redis.call('SADD', KEYS[1], ARGV[2]) end
in_pieces(moved, function(...) redis.call('HSET', KEYS[2], ...) end)
for i = first_fresh, first_freed - 1, words_max do
  redis.call('HSET', KEYS[3], unpack(ARGV, i, math.min(i + words_max, first_freed) - 1))
end
for i = first_resumed, first_change - 1, 3 do
  if ARGV[i + 2] == '' then
    redis.call('HDEL', KEYS[3], ARGV[i])
  else
    redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 2])
  end
end
in_pieces(freed_rows, function(...) redis.call('XDEL', KEYS[5], ...) end)
for i = first_change, first_deferred - 1, 4 do
  local row = redis.call('HGET', KEYS[8], ARGV[i])
  local token, rest = deferred_parts(row)
  if ARGV[i + 1] == '-' then
    redis.call('HDEL', KEYS[8], ARGV[i])
    redis.call('ZREM', KEYS[9], ARGV[i])
    redis.call('ZREM', KEYS[10], token .. ':' .. ARGV[i])
  else
    local due = digits(now_ms() + ARGV[i + 2])
    redis.call('HSET', KEYS[8], ARGV[i],
      deferred_row(ARGV[i + 1], digits(now_ms()), due, token, ARGV[i + 3], rest))
    redis.call('ZADD', KEYS[9], due, ARGV[i])
  end
end
for i = first_deferred, first_unparked - 1, 5 do
  last_deferred = last_deferred + 1
  local name, due = string.format('%016.0f', last_deferred), digits(now_ms() + ARGV[i + 1])
  redis.call('HSET', KEYS[8], name,
    deferred_row(ARGV[i], digits(now_ms()), due, ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]))
  redis.call('ZADD', KEYS[9], due, name)
  if ARGV[i + 2] ~= '-' then redis.call('ZADD', KEYS[10], 0, ARGV[i + 2] .. ':' .. name) end
end
if deferred > 0 then redis.call('SET', KEYS[11], digits(last_deferred)) end
for i = first_parked, first_destination - 1, 18 do
  number, operation = number + 1, operation + 1
  redis.call('XADD', KEYS[5], digits(number) .. '-0', 'at', digits(now_ms()),
    unpack(ARGV, i, i + 17))
  log(KEYS[6], operation, 'park', ARGV[i + 9], ARGV[i + 7])
end
for i = first_destination, first_row - 1 do redis.call('SADD', KEYS[7], ARGV[i]) end
for i = first_row, first_read - 1, 11 do
  local to = tonumber(ARGV[i])
  numbers[to] = numbers[to] + 1
  redis.call('XADD', KEYS[11 + to], digits(numbers[to]) .. '-0', unpack(ARGV, i + 1, i + 10))
end
for i = 0, writes - 1 do
  local key, value = KEYS[first_key + reads + i], ARGV[first_write + i]
  if value == '-' then
    redis.call('DEL', key)
  else
    redis.call('SET', key, value:sub(2))
  end
end
return {'ok'}
)lua");

// keys: scopes, positions, operations. words: 2 scope, 3 partition, 4 identity of the topic.
const RedisScript take = made_of(R"lua(
local offset, fence, rest = position_at(KEYS[2], ARGV[3])
local progress, identity = rest:match('^([^ ]+ [^ ]+ [^ ]+ [^ ]+ [^ ]+ )(.*)$')
if identity ~= '' and ARGV[4] ~= '' and identity ~= ARGV[4] then
  return {'other', offset, identity}
end
if ARGV[4] ~= '' then identity = ARGV[4] end
local operation = last_number(KEYS[3])
redis.call('SCARD', KEYS[1])
fence = next_fence(fence)
local taken = offset .. ' ' .. fence .. ' ' .. progress .. identity
redis.call('SADD', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[3], taken)
log(KEYS[3], operation + 1, 'take', ARGV[3], 'fence ' .. fence)
return {'ok', taken}
)lua");

// keys: meta. words: 2 version, 3 shards, 4 identity. Version 1 had no identity, and positions
// without progress, which are read as they are.
const RedisScript found_store = made_of(R"lua(
local known = redis.call('HMGET', KEYS[1], 'version', 'shards')
if not known[1] then
  redis.call('HSET', KEYS[1], 'version', ARGV[2], 'shards', ARGV[3], 'identity', ARGV[4])
elseif tonumber(known[1]) < tonumber(ARGV[2]) and known[2] == ARGV[3] then
  redis.call('HSETNX', KEYS[1], 'identity', ARGV[4])
  redis.call('HSET', KEYS[1], 'version', ARGV[2])
end
return redis.call('HMGET', KEYS[1], 'version', 'shards', 'identity')
)lua");

// keys: horizon, positions, hold. Answers the clock, the horizon, all positions, and whether the
// horizon is held.
const RedisScript describe_scope = made_of(R"lua(
return {digits(now_ms()), redis.call('GET', KEYS[1]) or '', redis.call('HGETALL', KEYS[2]),
  redis.call('EXISTS', KEYS[3])}
)lua");

// keys: horizon, hold; for the books also scopes, operations. words: 2 scope, 3 horizon in eight
// bytes, 4 in digits. The horizon moves all the time: one line says how far, until something else
// happens.
const RedisScript move_horizon = made_of(R"lua(
local before = redis.call('GET', KEYS[1])
if before and not is_less(before, ARGV[3]) then return 0 end
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
write_also_when_full(KEYS[1])
if #KEYS == 2 then
  redis.call('SET', KEYS[1], ARGV[3])
  return 1
end
local operation = last_number(KEYS[4])
local newest = redis.call('XREVRANGE', KEYS[4], '+', '-', 'COUNT', 1)[1]
redis.call('SCARD', KEYS[3])
redis.call('SET', KEYS[1], ARGV[3])
redis.call('SADD', KEYS[3], ARGV[2])
if newest and newest[2][4] == 'forget' then redis.call('XDEL', KEYS[4], newest[1]) end
log(KEYS[4], operation + 1, 'forget', ARGV[4], 'the horizon moved')
return 1
)lua");

namespace {

// keys: horizon, hold; for the books also scopes, operations. words: 2 scope, 3 horizon in eight
// bytes, 4 action, 5 subject, 6 reason. The hold is written first, so that a shard that has the
// horizon of a person keeps it.
RedisScript correct_horizon(std::string_view change) {
  return made_of(R"lua(
redis.call('GET', KEYS[1])
redis.call('GET', KEYS[2])
local operation
if #KEYS > 2 then
  operation = last_number(KEYS[4])
  redis.call('SCARD', KEYS[3])
end
)lua" + std::string(change) +
                 R"lua(
if operation then
  redis.call('SADD', KEYS[3], ARGV[2])
  log(KEYS[4], operation + 1, ARGV[4], ARGV[5], ARGV[6])
end
return {'ok'}
)lua");
}

}  // namespace

const RedisScript set_horizon =
    correct_horizon("redis.call('SET', KEYS[2], '1') redis.call('SET', KEYS[1], ARGV[3])");
const RedisScript release_horizon = correct_horizon("redis.call('DEL', KEYS[2])");

namespace {

// keys: a hash, horizon. words: 2 cursor, 3 how many to look at, 4 how many to remove, 5 horizon in
// eight bytes; a person may have set it back since the pass began. Answers where to go on, how many
// are gone, and whether there is more right here.
RedisScript sweep_with(std::string_view is_old) {
  return made_of(
      "local now = eight_bytes(now_ms())\nlocal below = redis.call('GET', KEYS[2]) or ''"
      "\nif is_less(ARGV[5], below) then below = ARGV[5] end"
      "\nlocal function is_old(row) " +
      std::string(is_old) + R"lua( end
local page = redis.call('HSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3])
local old, full, gone = {}, 0, 0
for i = 1, #page[2], 2 do
  if is_old(page[2][i + 1]) then
    if #old == tonumber(ARGV[4]) then
      full = 1
      break
    end
    old[#old + 1] = page[2][i]
  end
end
in_pieces(old, function(...) gone = gone + redis.call('HDEL', KEYS[1], ...) end)
return {full == 1 and ARGV[2] or page[1], gone, full}
)lua");
}

}  // namespace

// What waits (outcome 5) is not settled: its id is not forgotten.
const RedisScript sweep_ledger =
    sweep_with("return row:byte(1) % 16 ~= 5 and is_less(row:sub(2, 9), below)");

// Settled, or given up because its owner is lost.
const RedisScript sweep_claims = sweep_with(R"lua(
  if not is_less(row:sub(18, 25), below) then return false end
  local what = row:byte(1)
  if what % 16 >= 3 then return true end
  local lease = row:sub(2, 9)
  return what == 32 and lease ~= '\0\0\0\0\0\0\0\0' and not is_less(now, lease)
)lua");

namespace {

// keys: 1 positions of the relay. words: 2 destination, 3 fence.
constexpr std::string_view check_fence = R"lua(
local offset, fence = position_at(KEYS[1], ARGV[2])
if ARGV[3] == '0' or fence ~= ARGV[3] then return {'fenced', offset .. ' ' .. fence} end
)lua";

}  // namespace

// keys: positions of the relay, outbox, routes, sequences. words: from 4 on number,
// partition, and the sequence that is expected or nothing. A route that was given may have been
// used already: it never changes. Nothing is written before all is known to be right.
const RedisScript assign_routes = made_of(std::string(check_fence) + R"lua(
redis.call('HLEN', KEYS[3])
redis.call('HLEN', KEYS[4])
local counted, open = {}, {}
for i = 4, #ARGV, 3 do
  if not row_at(KEYS[2], ARGV[i]) then return {'missing', ARGV[i]} end
  if redis.call('HEXISTS', KEYS[3], ARGV[i]) == 0 then
    local partition = ARGV[i + 1]
    local sequence = counted[partition] or tonumber(redis.call('HGET', KEYS[4], partition) or '0')
    if ARGV[i + 2] ~= '' and ARGV[i + 2] ~= digits(sequence) then
      return {'diverged', (i - 4) / 3, sequence}
    end
    counted[partition] = sequence + 1
    open[#open + 1] = {ARGV[i], partition .. ' ' .. digits(sequence)}
  end
end
for _, row in ipairs(open) do redis.call('HSET', KEYS[3], row[1], row[2]) end
for partition, sequence in pairs(counted) do
  redis.call('HSET', KEYS[4], partition, digits(sequence))
end
return {'ok'}
)lua");

// keys: positions of the relay, outbox, routes. words: from 4 on numbers.
const RedisScript remove_sent = made_of(std::string(check_fence) + R"lua(
redis.call('XLEN', KEYS[2])
redis.call('HLEN', KEYS[3])
for i = 4, #ARGV do
  if redis.call('HDEL', KEYS[3], ARGV[i]) == 1 then
    redis.call('XDEL', KEYS[2], ARGV[i] .. '-0')
  end
end
return {'ok'}
)lua");

// keys: positions of the relay, outbox, routes, sequences; scopes, parked and operations of the
// scope in which rows are parked. words: 4 number, 5 reason, 6 that scope. Rows of the route that
// come behind the row lose theirs, and sequences are given anew from its own on.
const RedisScript park_row = made_of(std::string(check_fence) + R"lua(
local row = row_at(KEYS[2], ARGV[4])
if not row then return {'ok'} end
local behind = {ARGV[4]}
local route = redis.call('HGET', KEYS[3], ARGV[4])
local partition, sequence = (route or ''):match('^([^ ]+) ([^ ]+)$')
local routes = route and redis.call('HGETALL', KEYS[3]) or {}
for i = 1, #routes, 2 do
  local its_partition, its_sequence = routes[i + 1]:match('^([^ ]+) ([^ ]+)$')
  if its_partition == partition and tonumber(its_sequence) > tonumber(sequence) then
    behind[#behind + 1] = routes[i]
  end
end
redis.call('HLEN', KEYS[4])
redis.call('SCARD', KEYS[5])
local number, operation = last_number(KEYS[6]) + 1, last_number(KEYS[7]) + 1
in_pieces(behind, function(...) redis.call('HDEL', KEYS[3], ...) end)
if route then redis.call('HSET', KEYS[4], partition, sequence) end
redis.call('SADD', KEYS[5], ARGV[6])
redis.call('XADD', KEYS[6], digits(number) .. '-0', 'at', digits(now_ms()), 'partition', ARGV[2],
  'offset', ARGV[4], 'attempts', '1', 'reason', ARGV[5], unpack(row[2]))
redis.call('XDEL', KEYS[2], row[1])
log(KEYS[7], operation, 'park', row[2][2], ARGV[5])
return {'ok'}
)lua");

// keys: scopes, positions, operations. words: 2 scope, 3 partition, 4 offset, 5 action, 6 subject,
// 7 reason. What was known of the topic belongs to another place in it.
const RedisScript set_position = made_of(R"lua(
local _, fence = position_at(KEYS[2], ARGV[3])
local operation = last_number(KEYS[3])
redis.call('SCARD', KEYS[1])
redis.call('SADD', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4] .. ' ' .. next_fence(fence))
log(KEYS[3], operation + 1, ARGV[5], ARGV[6], ARGV[7])
return {'ok'}
)lua");

// keys: scopes, positions of the relay, operations, routes, sequences, outbox. words: 2 scope, 3
// relay's scope, 4 destination, 5 action, 6 subject, 7 reason, 8 `drop` or `keep` what is pending,
// 9 note about an id that is dropped, 10 how many of them are noted. The empty stream stays, since
// it counts the rows.
const RedisScript restart_destination = made_of(R"lua(
local offset, fence, rest = position_at(KEYS[2], ARGV[4])
local operation = last_number(KEYS[3])
redis.call('XLEN', KEYS[6])
redis.call('SCARD', KEYS[1])
redis.call('HLEN', KEYS[4])
redis.call('HLEN', KEYS[5])
redis.call('SADD', KEYS[1], ARGV[2], ARGV[3])
redis.call('DEL', KEYS[4], KEYS[5])
if ARGV[8] == 'drop' then
  for _, row in ipairs(redis.call('XRANGE', KEYS[6], '-', '+', 'COUNT', ARGV[10])) do
    for i = 1, #row[2], 2 do
      if row[2][i] == 'id' then
        operation = operation + 1
        log(KEYS[3], operation, 'drop', row[2][i + 1], ARGV[9])
      end
    end
  end
  redis.call('XTRIM', KEYS[6], 'MAXLEN', 0)
end
redis.call('HSET', KEYS[2], ARGV[4],
  digits(offset + 1) .. ' ' .. next_fence(fence) .. ' ' .. rest)
log(KEYS[3], operation + 1, ARGV[5], ARGV[6], ARGV[7])
return {'ok'}
)lua");

// keys: ledger, operations. words: 2 id as it is kept, 3 id, 4 note, 5 the row that the note tells
// of.
const RedisScript force_id = made_of(R"lua(
if redis.call('HGET', KEYS[1], ARGV[2]) ~= ARGV[5] then return {'changed'} end
local operation = last_number(KEYS[2])
redis.call('HDEL', KEYS[1], ARGV[2])
log(KEYS[2], operation + 1, 'force', ARGV[3], ARGV[4])
return {'ok'}
)lua");

// keys: 1 scopes; for the books 2 the operations of the store itself; then those that go. words:
// 2 scope; for the books 3 the scope of the store itself, 4 action, 5 reason.
const RedisScript drop_scope = made_of(R"lua(
local first, operation = 2, nil
redis.call('SCARD', KEYS[1])
if #ARGV > 2 then
  first, operation = 3, last_number(KEYS[2])
end
redis.call('SREM', KEYS[1], ARGV[2])
for i = first, #KEYS do redis.call('UNLINK', KEYS[i]) end
if operation then
  redis.call('SADD', KEYS[1], ARGV[3])
  log(KEYS[2], operation + 1, ARGV[4], ARGV[2], ARGV[5])
end
return {'ok'}
)lua");

// keys: parked, operations, ledger, outbox, destinations. words: 2 destination; then number, id as
// it is kept, id, note. Only ids that are parked are freed: one that has had its effect is not.
const RedisScript replay = made_of(R"lua(
local rows = {}
for i = 3, #ARGV, 4 do
  rows[i] = row_at(KEYS[1], ARGV[i])
  if not rows[i] then return {'missing', ARGV[i]} end
end
local operation, number = last_number(KEYS[2]), last_number(KEYS[4])
redis.call('HLEN', KEYS[3])
redis.call('SCARD', KEYS[5])
redis.call('SADD', KEYS[5], ARGV[2])
for i = 3, #ARGV, 4 do
  operation, number = operation + 1, number + 1
  local row = redis.call('HGET', KEYS[3], ARGV[i + 1])
  if row and row:byte(1) % 16 == 4 then redis.call('HDEL', KEYS[3], ARGV[i + 1]) end
  redis.call('XADD', KEYS[4], digits(number) .. '-0', unpack(rows[i][2], 11, 20))
  redis.call('XDEL', KEYS[1], rows[i][1])
  log(KEYS[2], operation, 'replay', ARGV[i + 2], ARGV[i + 3])
end
return {'ok'}
)lua");

// keys: parked, operations. words: from 2 on number, id, note.
const RedisScript drop = made_of(R"lua(
for i = 2, #ARGV, 3 do
  if not row_at(KEYS[1], ARGV[i]) then return {'missing', ARGV[i]} end
end
local operation = last_number(KEYS[2])
for i = 2, #ARGV, 3 do
  operation = operation + 1
  redis.call('XDEL', KEYS[1], ARGV[i] .. '-0')
  log(KEYS[2], operation, 'drop', ARGV[i + 1], ARGV[i + 2])
end
return {'ok'}
)lua");

// keys: claims, horizon, scopes. words: 2 scope, 3 lease, 4 first byte of the row, 5 owner, 6 tail,
// 7 how many are born now; then the ids; then for each what is kept of it, before that its birth,
// unless it is born now. What is not there yet is claimed, with the time as its fence; answers the
// clock, the horizon, and the rows that were there before, in pieces.
const RedisScript claim = made_of(R"lua(
local now, count, born_now = now_ms(), (#ARGV - 7) / 2, tonumber(ARGV[7])
local horizon = redis.call('GET', KEYS[2]) or ''
local head = ARGV[4] .. eight_bytes(now + ARGV[3]) .. eight_bytes(now)
local fence, tail = eight_bytes(now), ARGV[5] .. ARGV[6]
local answer, made = {digits(now), horizon}, {}
redis.call('SCARD', KEYS[3])
for first = 1, count, words_max do
  local last = math.min(first + words_max - 1, count)
  local rows = redis.call('HMGET', KEYS[1], unpack(ARGV, 7 + first, 7 + last))
  answer[#answer + 1] = rows
  for i = first, last do
    if not rows[i - first + 1] then
      local middle = ARGV[7 + count + i]
      if i <= born_now then
        middle = eight_bytes(now) .. fence .. middle
      elseif is_less(middle:sub(1, 8), horizon) then
        middle = nil
      else
        middle = middle:sub(1, 8) .. fence .. middle:sub(9)
      end
      if middle then
        made[#made + 1] = ARGV[7 + i]
        made[#made + 1] = head .. middle .. tail
      end
    end
  end
end
if #made > 0 then redis.call('SADD', KEYS[3], ARGV[2]) end
in_pieces(made, function(...) redis.call('HSET', KEYS[1], ...) end)
return answer
)lua");

namespace {

// Lets `changed(row, place of the item)` say what becomes of each claim that is held under the
// fence that is told: ids and fences are words of an item. Answers which were.
RedisScript change_with(std::string_view width, std::string_view first, std::string_view changed) {
  return made_of("local width, first = " + std::string(width) + ", " + std::string(first) +
                 "\nlocal now = now_ms()\nlocal function changed(row, i)" + std::string(changed) +
                 R"lua( end
local ids, rows, touched, answer = {}, {}, {}, {}
for i = first, #ARGV, width do ids[#ids + 1] = ARGV[i] end
local at = 0
in_pieces(ids, function(...)
  for _, row in ipairs(redis.call('HMGET', KEYS[1], ...)) do
    at = at + 1
    rows[ids[at]] = row
  end
end)
for i = first, #ARGV, width do
  local row = rows[ARGV[i]]
  local ours = row and row:sub(26, 33) == ARGV[i + 1] and row:sub(2, 9) ~= '\0\0\0\0\0\0\0\0'
  if ours then
    rows[ARGV[i]] = changed(row, i)
    touched[ARGV[i]] = true
  end
  answer[#answer + 1] = ours and 1 or 0
end
write_also_when_full(KEYS[1])
local made = {}
for id in pairs(touched) do
  made[#made + 1] = id
  made[#made + 1] = rows[id]
end
in_pieces(made, function(...) redis.call('HSET', KEYS[1], ...) end)
return answer
)lua");
}

}  // namespace

// keys: claims. words: 2 lease; then id, fence.
const RedisScript renew_claims = change_with("2", "3", R"lua(
  local lease, before = eight_bytes(now + ARGV[2]), row:sub(2, 9)
  return row:sub(1, 1) .. (is_less(before, lease) and lease or before) .. row:sub(10)
)lua");

// keys: claims. words: from 2 on id, fence, state, tail. Whoever goes on keeps lease and owner.
const RedisScript change_claims = change_with("4", "2", R"lua(
  local what, to, kept_end = row:byte(1), tonumber(ARGV[i + 2]), 34 + row:byte(34)
  local head = string.char(what - what % 16 + to)
  local middle = eight_bytes(now) .. row:sub(18, kept_end)
  if to ~= 0 then return head .. '\0\0\0\0\0\0\0\0' .. middle .. '\0' .. ARGV[i + 3] end
  local owner_end = kept_end + 1 + row:byte(kept_end + 1)
  return head .. row:sub(2, 9) .. middle .. row:sub(kept_end + 1, owner_end) .. ARGV[i + 3]
)lua");

// keys: claims, and operations if there is a line to be written. words: 2 action, 3 subject,
// 4 reason; then id, row as it must be (empty: none), row as it will be. Answers which were
// written.
const RedisScript write_claims = made_of(R"lua(
local operation = KEYS[2] and last_number(KEYS[2])
local answer = {}
redis.call('HLEN', KEYS[1])
for i = 5, #ARGV, 3 do
  local ours = (redis.call('HGET', KEYS[1], ARGV[i]) or '') == ARGV[i + 1]
  if ours then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 2]) end
  if ours and operation then log(KEYS[2], operation + 1, ARGV[2], ARGV[3], ARGV[4]) end
  answer[#answer + 1] = ours and 1 or 0
end
return answer
)lua");

// keys: operations. words: 2 action, 3 subject, 4 reason.
const RedisScript log_operation = made_of(R"lua(
log(KEYS[1], last_number(KEYS[1]) + 1, ARGV[2], ARGV[3], ARGV[4])
return {'ok'}
)lua");

}  // namespace once::redis_scripts
