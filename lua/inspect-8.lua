--[[
Reads a model's quota for people, and the policy's input. Removes what has left the window, repairs
what an eviction or a failover has broken, and changes nothing else.

Keys, all with the hash tag {provider:model}: the first five of reserve-7.lua, and
  KEYS[6] gate     text for people, see include/gate.lua
  KEYS[7] log      list, see include/log.lua
  KEYS[8] known    what the policy knows

Arguments (numbers packed as little-endian doubles, times in microseconds)
  ARGV[1]  1 number: clock for tests, 0 for the server's
  ARGV[2]  the quota, see include/arguments.lua

Reply
  1 numbers  packed doubles:
    now; time until the gate opens; why it is closed (0 open, 1 pause, 2 exhausted, 3 refused);
    reservations in the window; mean time from admission to settlement; cap on calls in flight after
    overloads, 0 for none; requests and tokens of the day, 0 without a limit by the day; time until
    the day ends; calls in flight; limit on them, 0 for none; horizon; version and fingerprint of
    the plan; number of lanes that follow; then
    for each dimension (requests, input, output, combined) of the plan rate, capacity, window, most;
    drawn; in the window; the unsettled part of it; then
    for each lane waiting callers, about; time until the last one's turn; calls in flight; each
    dimension in the window
  2 reason of the pause, empty when the gate is open
  then the policy's input, see include/log.lua
]]
--- @include "include/numbers"
--- @include "include/arguments"
--- @include "include/clock"
--- @include "include/state"
--- @include "include/entries"
--- @include "include/recount"
--- @include "include/levels"
--- @include "include/holds"
--- @include "include/day"
--- @include "include/queue"
--- @include "include/room"
--- @include "include/log"
local call, quota = read_arguments(2, 1, 1)
if not call then
  return quota
end
local keys = common_keys()
keys.gate, keys.log, keys.known = KEYS[6], KEYS[7], KEYS[8]
local state, now = load_quota(keys, quota, call[1])
if not state then
  return now
end
if state.is_broken then
  recount(keys, state, quota, now)
  expire(keys, state, quota, now)
end
save_state(keys, quota, state, now)
local pause, day = closed_for(state, now), { calls = 0, tokens = 0 }
if counts_days(quota) then
  day = load_day(keys, quota, now)
end
local in_window = redis.call('ZCARD', keys.ledger)
local all = {
  now,
  pause,
  pause > 0 and state[CLOSED] or OPEN,
  in_window,
  state[LATENCY],
  math.floor(state[CAP]),
  day.calls,
  day.tokens,
  day_left(quota, now),
  state[FLIGHT],
  flight_limit(state),
  state[HORIZON],
  state[VERSION],
  state[FINGERPRINT],
  state[LANES],
}
for dimension = 1, DIMENSIONS do
  local slot = dimension_slot(dimension)
  for _, field in ipairs({ RATE, CAPACITY, PLAN_WINDOW, MOST, DRAWN, TOTAL, HELD }) do
    all[#all + 1] = state[slot + field]
  end
end
for lane = 1, state[LANES] do
  local slot, work = lane_slot(lane), waiting_work(state, lane)
  local mean = in_window > 0 and state[PROGRESS] > 0 and state[PROGRESS] / GRAIN / in_window or 1
  all[#all + 1] = work > 0 and math.max(1, math.floor(work / mean + 0.5)) or 0
  all[#all + 1] = quota[LANE_SHARES + 2 * lane] and queue_time(state, quota, lane) or 0
  for field = LANE_FLIGHT, USED + DIMENSIONS do
    all[#all + 1] = state[slot + field]
  end
end
local reply = { struct.pack('<' .. string.rep('d', #all), unpack(all)) }
reply[2] = pause > 0 and redis.call('GET', keys.gate) or ''
for _, part in ipairs(policy_reading(keys, state, now)) do
  reply[#reply + 1] = part
end
return reply
