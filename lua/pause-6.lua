--[[
Closes the gate of a model for the whole fleet, or opens it.

Guarantees
  * A pause never shortens one in force, and ends by itself after its time to live at the latest.
  * Turns are amounts of work: tickets keep their order and their spacing.

Keys, all with the hash tag {provider:model}: the first five of reserve-7.lua, and
  KEYS[6] gate     text for people, see include/gate.lua

Arguments (numbers packed as little-endian doubles, times in microseconds)
  ARGV[1]  reason
  ARGV[2]  3 numbers: pause from now, 0 to open the gate; longest pause; clock for tests, 0 for the
           server's
  ARGV[3]  the quota, see include/arguments.lua

Reply: integers
  1 pause  microseconds until the gate opens, 0 when it is open
]]
--- @include "include/numbers"
--- @include "include/arguments"
--- @include "include/clock"
--- @include "include/state"
--- @include "include/entries"
--- @include "include/levels"
--- @include "include/holds"
--- @include "include/gate"
local call, quota = read_arguments(3, 2, 3)
if not call then
  return quota
end
local keys = common_keys()
keys.gate = KEYS[6]
local state, now = load_quota(keys, quota, call[3])
if not state then
  return now
end
local pause = call[1]
if pause > 0 then
  pause = close_gate(keys, state, now, pause, call[2], PAUSED, ARGV[1])
else
  open_gate(state)
  redis.call('DEL', keys.gate)
end
save_state(keys, quota, state, now)
return { math.ceil(pause) }
