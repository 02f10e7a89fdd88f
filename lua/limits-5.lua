--[[
Sets a model's limits for the whole fleet while it runs, or gives the configured ones back. Use in
the window stays as it is.

Guarantees
  * From the next question on, every program that shares the quota is measured by the new limits.
  * A pace clock that was ahead is as far ahead as the new limit would have put it, but by the limit
    alone never farther than a window; and where all limits rise every queue moves up in proportion:
    both were reckoned with the old limits.

Keys, all with the hash tag {provider:model}: the first five of reserve-8.lua

Arguments (numbers packed as little-endian doubles, times in microseconds)
  ARGV[1]  6 numbers: for requests, input, output, combined and calls at once the new limit plus 1,
           1 for the configured one, 0 to leave it; then the clock for tests, 0 for the server's
  ARGV[2]  the model, see include/arguments.lua

Reply: integers
  1 to 5  limit of each dimension now set, 0 when the configured one holds
]]
--- @include "include/arguments"
--- @include "include/clock"
--- @include "include/state"
--- @include "include/tuning"
--- @include "include/shift"
local call, model = read_arguments(2, 1, 6)
if not call then
  return model
end
local keys = common_keys()
local state, now = load_state(keys, model, clock(call[6]))
if not state then
  return now
end
local tuning = load_tuning(keys, state, model, now) or new_tuning(now)
state[TUNED] = 1
local before = limits_now(model, tuning)
local set = {}
for dimension = 1, IN_FLIGHT do
  local slot = tuned_slot(dimension) + ORDERED
  if call[dimension] > 0 then
    -- Who sets a limit knows better than what refusals have taught.
    tuning[slot], tuning[FACTOR] = call[dimension] - 1, 1
  end
  set[dimension] = math.ceil(tuning[slot])
end
local after, slower = limits_now(model, tuning), 0
for dimension = 1, IN_FLIGHT do
  if before[dimension] > 0 then
    local ratio = after[dimension] > 0 and before[dimension] / after[dimension] or 0
    local pace = dimension_slot(dimension) + PACE
    slower = math.max(slower, ratio)
    -- Never farther than a window: by then what was used has left it.
    local ahead = math.max(0, state[pace] - now)
    state[pace] = now + math.min(ahead * ratio, math.max(ahead, model[WINDOW]))
  end
end
if slower > 0 and slower < 1 then
  for lane = 1, state[LANES] do
    local slot = lane_slot(lane)
    local queue = math.max(0, state[slot + TAIL] + state[slot + SHIFT] - now)
    shift_queue(state, lane, -queue * (1 - slower))
  end
end
save_tuning(keys, tuning)
save_state(keys, state, model, now)
return set
