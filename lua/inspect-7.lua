--[[
Tells what a model's quota looks like now. Takes out what has left the window, and changes nothing
else.

Keys, all with the hash tag {provider:model}: the first five of reserve-8.lua, and
  KEYS[6] gate     text for people, see include/gate.lua
  KEYS[7] burst    packed doubles, see include/burst.lua

Arguments (numbers packed as little-endian doubles, times in microseconds)
  ARGV[1]  1 number: clock for tests, 0 for the server's
  ARGV[2]  the model, see include/arguments.lua

Reply: integers, and the reason last
  1 now           microseconds since 1970 by the server's clock
  2 pause         microseconds until the gate opens, 0 when it is open
  3 closed for    0 open, 1 a pause, 2 exhausted until a reset or a payment
  4 reservations  in the window
  5 latency       mean microseconds from admission to settlement
  6 factor        on every limit after refusals, in millionths
  7 cap           on calls in flight after overloads, 0 for none
  8, 9            requests and tokens of the day, 0 without a limit by the day
  10 day          microseconds until the day ends
  11 lanes        how many follow
  then for each dimension (requests, input, output, combined, calls at once): limit in force, total
  in the window, of it not settled, use by others, limit set by an operator, lower limit stated by
  the provider, microseconds that the pace is ahead
  then for each lane: callers waiting, microseconds that a newcomer would wait for its turn,
  microseconds until the head of the queue may go, total of each dimension
  then what the provider counts of a call: 0 not known, 1 what is used, 2 the larger of input and
  `max_tokens`, 3 both
  then the reason of the pause, empty when the gate is open
]]
--- @include "include/arguments"
--- @include "include/clock"
--- @include "include/state"
--- @include "include/ledger"
--- @include "include/tuning"
--- @include "include/gate"
--- @include "include/shift"
--- @include "include/burst"
--- @include "include/quota"
--- @include "include/counted"
--- @include "include/judged"
local call, model = read_arguments(2, 1, 1)
if not call then
  return model
end
local keys = common_keys()
keys.gate, keys.burst = KEYS[6], KEYS[7]
local quota, outdated = load_quota(keys, model, call[1])
if not quota then
  return outdated
end
local state, tuning, now = quota.state, quota.tuning, quota.now
end_leases(keys, state, model, now)
save_quota(quota)
local pause, lanes, limits = closed_for(state, now), state[LANES], limits_now(model, tuning)
local all = tuning or new_tuning(now)
local reply = {
  now,
  math.ceil(pause),
  pause > 0 and state[CLOSED_FOR] or OPEN,
  redis.call('ZCARD', keys.ledger),
  math.ceil(state[LATENCY]),
  math.ceil(all[FACTOR] * 1000000),
  math.floor(all[CAP]),
  all[DAY_REQUESTS],
  math.ceil(all[DAY_TOKENS]),
  FULL_DAY - (now + model[DAY_OFFSET]) % FULL_DAY,
  lanes,
}
for dimension = 1, IN_FLIGHT do
  local slot, tuned = dimension_slot(dimension), tuned_slot(dimension)
  local external = external_use(tuning, dimension, limits[dimension], model[WINDOW], now)
  reply[#reply + 1] = math.floor(limits[dimension])
  reply[#reply + 1] = math.ceil(state[slot + TOTAL])
  reply[#reply + 1] = math.ceil(state[slot + HELD])
  reply[#reply + 1] = math.ceil(external)
  reply[#reply + 1] = math.ceil(all[tuned + ORDERED])
  reply[#reply + 1] = math.floor(all[tuned + STATED])
  reply[#reply + 1] = math.ceil(math.max(0, state[slot + PACE] - now))
end
for lane = 1, lanes do
  local slot = lane_slot(lane)
  local queue = math.max(0, state[slot + TAIL] + state[slot + SHIFT] - now)
  reply[#reply + 1] = queue > 0 and state[slot + WAITING] or 0
  reply[#reply + 1] = math.ceil(queue)
  reply[#reply + 1] = math.ceil(math.max(0, state[slot + HEAD] - now))
  for dimension = 1, IN_FLIGHT do
    reply[#reply + 1] = math.ceil(state[slot + USED + dimension])
  end
end
reply[#reply + 1] = counted_by(state)
reply[#reply + 1] = pause > 0 and redis.call('GET', keys.gate) or ''
return reply
