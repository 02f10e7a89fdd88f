--[[
Opens a budget with what has been spent of it, or sets what has been spent.

Guarantees
  * An existing budget stays as it is, unless it is to be set.
  * The holds of calls under way stay, and count besides what is set.

Keys: as budget-reserve-1.lua

Arguments: whole numbers below 2^53 as decimal text; amounts in nano-dollars, 10^-9 USD
  ARGV[1] spent
  ARGV[2] ceiling: 2^53 - 1 for none
  ARGV[3] 1 when the budget is for a day, 0 when it never begins anew
  ARGV[4] 1 to set an existing budget, 0 to leave it
  ARGV[5] clock for tests in microseconds, 0 for the server's

Reply: integers
  1 outcome  1 done, 0 it existed
]]
--- @include "include/clock"
--- @include "include/budget"
local given, refused = budget_arguments(1, 5, 5)
if not given then
  return refused
end
local key, spent, ceiling, daily = KEYS[1], given[1], given[2], given[3] == 1
local UNBOUNDED = 9007199254740991
local day = budget_day(daily, clock(given[5]))
local known = redis.call('HMGET', key, 'spent', 'day', 'ceiling')
if known[1] and given[4] ~= 1 then
  return { 0 }
end
if tonumber(known[2] or 0) < day then
  redis.call('DEL', key)
else
  local all = redis.call('HGETALL', key)
  for index = 1, #all, 2 do
    if string.match(all[index], '^hold:') then
      spent = spent + all[index + 1]
    end
  end
end
redis.call('HSET', key, 'spent', format_whole(spent), 'day', day)
if ceiling < UNBOUNDED or known[3] then
  -- A caller with checkpoints writes one before the next call.
  redis.call('HSET', key, 'ceiling', format_whole(ceiling < UNBOUNDED and ceiling or 0))
end
keep_budget(key, daily)
return { 1 }
