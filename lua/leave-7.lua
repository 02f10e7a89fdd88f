--[[
Removes waiting callers of a tenant from a lane: all, because their batch was cancelled, or one that
has hung up.

Guarantees
  * All: the tenant's next new caller stands at the front of the lane, and not behind those that are
    gone. Callers of the tenant that still wait keep their turns, and new ones may overtake them.
  * One: the tenant's callers behind it move up by its work. Callers before it may be overtaken.
  * Turns of other tenants stay as they are.
  * No amount changes. Removing a tenant's callers again changes nothing.

Keys, all with the hash tag {provider:model}: the first five of reserve-7.lua, and
  KEYS[6] tenants  hash of this lane, see include/queue.lua

Arguments (numbers packed as little-endian doubles, times in microseconds)
  ARGV[1]  tenant
  ARGV[2]  8 numbers
             1      lane, counted from 1
             2      clock for tests, 0 for the server's
             3, 4   ticket of the one caller: epoch and position; 0 for all of the tenant's
             5..8   amounts that the one caller asked for: requests, input, output, combined tokens
  ARGV[3]  the quota, see include/arguments.lua

Reply: integers
  1 waits  work of the callers that still wait in the lane, in millionths of a limit
]]
--- @include "include/numbers"
--- @include "include/arguments"
--- @include "include/clock"
--- @include "include/state"
--- @include "include/entries"
--- @include "include/levels"
--- @include "include/queue"
local call, quota = read_arguments(3, 2, 8)
if not call then
  return quota
end
local lane = call[1]
if not is_lane(lane, quota) then
  return bad_argument(2, 'a lane of the quota')
end
local state, now = load_quota(common_keys(), quota, call[2])
if not state then
  return now
end
local queue = load_queue(state, lane, KEYS[6])
local line = queue.lines[ARGV[1]]
if line and call[4] == 0 then
  line.tail, line.changed = line.served, true
elseif line and call[3] == state[EPOCH] then
  local work = math.ceil(work_of(state, { call[5], call[6], call[7], call[8] }) * GRAIN)
  give_up(line, call[4] - 1, work)
end
save_queue(state, quota, queue, now)
local waits = waiting_work(state, lane)
save_state(common_keys(), quota, state, now)
return { math.ceil(waits * MILLION) }
