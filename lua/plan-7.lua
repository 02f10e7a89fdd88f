--[[
Writes a policy's plan and what the policy knows, and removes from the log what it has read.

Guarantees
  * A plan is not written if another one has come into force since it was read.
  * Levels are changed by the policy's amounts and never set: admissions since its reading count.
  * Without a plan in force, the levels begin as the caller last saw them.
  * Whose plan is in force changes only where reserve-7.lua wants another plan (outcome 6).

Keys, all with the hash tag {provider:model}: the first five of reserve-7.lua, and
  KEYS[6] log      list, see include/log.lua
  KEYS[7] known    what the policy knows

Arguments (numbers packed as little-endian doubles, times in microseconds)
  ARGV[1]  25 numbers: version that was read, 0 where there is no plan; last observation that was
           read; clock for tests, 0 for the server's; horizon; calls at once, 0 for no limit; then
           for each dimension rate in units a microsecond, capacity, what a window may have
           (infinite for no window), the most that a call may need (0 for no limit, then the others
           mean nothing), and the change of what is drawn
  ARGV[2]  the quota, see include/arguments.lua
  ARGV[3]  what the policy knows: at most 4 KB

Reply: integers
  1 written  1, or 0 if another plan was written since
  2 room     the room that is left now, as the time that an even pace takes to use it
]]
--- @include "include/numbers"
--- @include "include/arguments"
--- @include "include/clock"
--- @include "include/state"
--- @include "include/entries"
--- @include "include/levels"
--- @include "include/plan"
local HEAD, OF_A_DIMENSION, ALL_NUMBERS, EXACTLY = 5, 5, 25, 9007199254740992
local KILOBYTES = 4096
if #ARGV ~= 3 then
  return redis.error_reply('TIDEGATE wants 3 arguments, not ' .. #ARGV)
end
local plan, refusal = read_numbers(1, ALL_NUMBERS, -EXACTLY, true)
if not plan then
  return refusal
end
local quota, unusable = read_quota(2)
if not quota then
  return unusable
end

-- The error reply for a wrong plan, else nil.
local function wrong_plan()
  for place = 1, HEAD do
    if plan[place] < 0 or plan[place] == math.huge then
      return bad_argument(1, 'a plan whose first numbers are finite and not below 0')
    end
  end
  for dimension = 1, DIMENSIONS do
    local at = HEAD + (dimension - 1) * OF_A_DIMENSION
    local rate, capacity, window, most, change = unpack(plan, at + 1, at + OF_A_DIMENSION)
    local is_finite = math.max(rate, capacity, most, change) < math.huge
    local is_none = most == 0 and rate == 0 and capacity == 0 and window == 0
    local is_some = most > 0 and rate * EXACTLY >= 1 and math.min(capacity, window) > 0
    if not is_finite or not (is_none or is_some) then
      return bad_argument(1, 'a plan of rates, capacities and windows that something fits into')
    end
  end
  if #ARGV[3] > KILOBYTES then
    return bad_argument(3, 'at most 4 KB')
  end
end

refusal = wrong_plan()
if refusal then
  return refusal
end
local keys = common_keys()
keys.log, keys.known = KEYS[6], KEYS[7]
local state, now = load_quota(keys, quota, plan[3])
if not state then
  return now
end
if state[VERSION] ~= plan[1] then
  save_state(keys, quota, state, now)
  return { 0, 0 }
end
-- A plan of the same fingerprint is as new as the newest program that wrote it. Another program's
-- plan, such as one that sets limits for operators, takes the place of no fingerprint.
if quota[OWN_FINGERPRINT] == state[FINGERPRINT] then
  state[BORN] = math.max(state[BORN], quota[BEGAN])
elseif wants_plan(state, quota, now) then
  state[FINGERPRINT], state[REPLACED], state[BORN] = quota[OWN_FINGERPRINT], now, quota[BEGAN]
end
for dimension = 1, DIMENSIONS do
  local slot, at = dimension_slot(dimension), HEAD + (dimension - 1) * OF_A_DIMENSION
  for field = RATE, MOST do
    state[slot + field] = plan[at + field]
  end
  local change = plan[at + OF_A_DIMENSION]
  state[slot + DRAWN] = math.max(0, state[slot + DRAWN] + change)
  state[slot + CHANGED] = state[slot + CHANGED] + change
  state[slot + PEAK] = 0
end
state[VERSION], state[HORIZON], state[CONCURRENT] = state[VERSION] + 1, plan[4], plan[5]
local unread = math.max(0, state[LOGGED] - plan[2])
if unread == 0 then
  redis.call('DEL', keys.log)
else
  redis.call('LTRIM', keys.log, -unread, -1)
end
state[URGENT] = 0
for _, observation in ipairs(redis.call('LRANGE', keys.log, 0, -1)) do
  state[URGENT] = string.byte(observation) > 0 and 1 or state[URGENT]
end
state[HANDED_DONE] = 1
redis.call('SET', keys.known, ARGV[3], 'PX', MONTH / MILLISECOND)
local room = room_now(state)
save_state(keys, quota, state, now)
return { 1, math.ceil(room) }
