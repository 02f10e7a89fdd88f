--[[
Begins a checkpoint of a budget, or ends it.

A checkpoint holds a ceiling: how much may be spent before the next checkpoint. It is written
elsewhere first; then the ceiling is in force here, and no call is held beyond it. So the last
checkpoint is never below what was spent, whenever this server loses its data.

Guarantees
  * Generations grow, even over a loss, as long as the clock does.
  * Only the end of the newest generation raises the ceiling. The begin of one lowers it, never
    below what is spent and held.

Keys: as budget-reserve-1.lua

Arguments: whole numbers below 2^53 as decimal text; amounts in nano-dollars, 10^-9 USD
  ARGV[1] 0 to begin, else the generation that ends
  ARGV[2] to begin: the amount that may be spent beyond what is spent and held now; to end: the
          ceiling that was written
  ARGV[3] budget: no ceiling is higher
  ARGV[4] 1 when the budget is for a day, 0 when it never begins anew
  ARGV[5] clock for tests in microseconds, 0 for the server's

Reply: integers
  1 outcome     1 done, 0 not: no such budget, or a newer generation has begun
  2 ceiling     to be written
  3 generation  to be written
  4 spent       settled and held
  5 day         0 without days
]]
--- @include "include/clock"
--- @include "include/budget"
local given, refused = budget_arguments(1, 5, 5)
if not given then
  return refused
end
local key, ending, budget, daily = KEYS[1], given[1], given[3], given[4] == 1
local now = clock(given[5])
local known = redis.call('HMGET', key, 'spent', 'day', 'ceiling', 'generation')
local spent, day = tonumber(known[1] or 0), tonumber(known[2] or 0)
local ceiling, generation = tonumber(known[3] or 2 ^ 53), tonumber(known[4] or 0)
if not known[1] then
  return { 0, 0, 0, 0, 0 }
end
if ending > 0 then
  if generation ~= ending then
    return { 0, ceiling, generation, spent, day }
  end
  redis.call('HSET', key, 'ceiling', format_whole(given[2]))
  return { 1, given[2], generation, spent, day }
end
local today = budget_day(daily, now)
if today > day then
  redis.call('DEL', key)
  spent, day, ceiling = 0, today, 0
  redis.call('HSET', key, 'spent', '0', 'day', day)
end
-- Spending beyond the budget, by calls that cost more than was held, is included.
local wanted = math.max(spent, math.min(budget, spent + given[2]))
generation = math.max(generation + 1, math.floor(now / 1000))
local lowered = format_whole(math.min(ceiling, wanted))
redis.call('HSET', key, 'ceiling', lowered, 'generation', format_whole(generation))
keep_budget(key, daily)
return { 1, wanted, generation, spent, day }
