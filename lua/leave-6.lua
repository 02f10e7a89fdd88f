--[[
Callers of a tenant that wait in a lane come no more: their batch was cancelled.

Guarantees
  * The tenant's next newcomer stands at the front of the lane, and not behind those that are gone.
    Others of the same tenant that still wait keep their turns, and may be overtaken by newcomers.
  * Turns of other tenants stay as they are. Where none of them waits the lane's queue is empty.
  * No amount changes. Said again it says the same.

Keys, all with the hash tag {provider:model}: the first five of reserve-8.lua, and
  KEYS[6] tenants  sorted set of this lane, tenant by the end of its queue

Arguments (numbers packed as little-endian doubles, times in microseconds)
  ARGV[1]  tenant
  ARGV[2]  2 numbers: lane, counted from 1; clock for tests, 0 for the server's
  ARGV[3]  the model, see include/arguments.lua

Reply: integers
  1 queue  microseconds that the lane's queue is long now
]]
--- @include "include/arguments"
--- @include "include/clock"
--- @include "include/state"
local call, model = read_arguments(3, 2, 2)
if not call then
  return model
end
local lane, lanes, tenants_key = call[1], (#model - LANE_SHARES) / 2, KEYS[6]
if lane < 1 or lane > lanes or lane ~= math.floor(lane) then
  return bad_argument(2, 'a lane from 1 to ' .. lanes)
end
local keys = common_keys()
local state, now = load_state(keys, model, clock(call[2]))
if not state then
  return now
end
local lane_at = lane_slot(lane)
local front = now - state[lane_at + SHIFT]
redis.call('ZREM', tenants_key, ARGV[1])
local last = tonumber(redis.call('ZREVRANGE', tenants_key, 0, 0, 'WITHSCORES')[2] or 0)
state[lane_at + TAIL] = math.min(state[lane_at + TAIL], math.max(front, last))
if last <= front then
  state[lane_at + WAITING], state[lane_at + BACKLOGGED_AT] = 0, 0
  state[lane_at + HEAD] = math.min(state[lane_at + HEAD], now)
end
save_state(keys, state, model, now)
return { math.ceil(math.max(0, state[lane_at + TAIL] - front)) }
