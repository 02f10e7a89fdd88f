--[[
Replaces a call's hold by its cost; a cost of 0 releases the hold.

Guarantees
  * Each id is settled once: a second settlement changes nothing, nor does the settlement of a call
    that is not held (its day has ended, or the server has forgotten it).
  * A cost above the hold is charged in full, even beyond the budget: later calls are then refused.

Keys: as budget-reserve-1.lua

Arguments
  ARGV[1] reservation id
  ARGV[2] cost in nano-dollars, 10^-9 USD: a whole number below 2^53 as decimal text

Reply: integers
  1 outcome  1 done, 0 not held
]]
--- @include "include/budget"
local given, refused = budget_arguments(2, 2, 2)
if not given then
  return refused
end
local key, id, cost = KEYS[1], given[1], given[2]
local held = redis.call('HGET', key, 'hold:' .. id)
if not held then
  return { 0 }
end
local spent = redis.call('HGET', key, 'spent') - held + cost
redis.call('HDEL', key, 'hold:' .. id, 'until:' .. id)
redis.call('HSET', key, 'spent', format_whole(spent))
return { 1 }
