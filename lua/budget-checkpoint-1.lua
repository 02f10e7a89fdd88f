--[[
Begins a checkpoint of a budget, or ends it.

A checkpoint says how much may have been spent before the next one: the ceiling. It is written
elsewhere, first; then the ceiling is in force here, and no call is held beyond it. So what the last
checkpoint says is never less than what was spent, whenever this server loses what it has.

Guarantees
  * Generations grow, even over a loss, as long as the clock does.
  * A ceiling is raised by the end of the newest generation alone; it is lowered as one begins, and
    never below what is spent and held.

Keys: as budget-reserve-1.lua

Arguments: whole numbers below 2^53 as decimal text; amounts in nano-dollars, 10^-9 USD
  ARGV[1] 0 to begin, else the generation that ends
  ARGV[2] to begin: how much more than is spent and held may be spent before the next checkpoint;
          to end: the ceiling that was written
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
local key, daily, now = KEYS[1], ARGV[4] == '1', tonumber(ARGV[5])
for index = 1, 5 do
  local text = ARGV[index] or ''
  if #ARGV ~= 5 or not string.match(text, '^%d+$') or tonumber(text) >= 2 ^ 53 then
    return redis.error_reply('TIDEGATE wants 5 arguments, whole numbers below 2^53')
  end
end
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local known = redis.call('HMGET', key, 'spent', 'day', 'ceiling', 'generation')
local spent, day = tonumber(known[1] or 0), tonumber(known[2] or 0)
local ceiling, generation = tonumber(known[3] or 2 ^ 53), tonumber(known[4] or 0)
if not known[1] then
  return { 0, 0, 0, 0, 0 }
end
if ARGV[1] ~= '0' then
  if generation ~= tonumber(ARGV[1]) then
    return { 0, ceiling, generation, spent, day }
  end
  redis.call('HSET', key, 'ceiling', ARGV[2])
  return { 1, tonumber(ARGV[2]), generation, spent, day }
end
local today = daily and math.floor(now / 86400000000) or 0
if today > day then
  redis.call('DEL', key)
  spent, day, ceiling = 0, today, 0
  redis.call('HSET', key, 'spent', '0', 'day', day)
end
-- What was spent beyond the budget, by calls that cost more than was held, is remembered too.
local wanted = math.max(spent, math.min(tonumber(ARGV[3]), spent + tonumber(ARGV[2])))
generation = math.max(generation + 1, math.floor(now / 1000))
redis.call('HSET', key, 'ceiling', string.format('%.0f', math.min(ceiling, wanted)),
  'generation', string.format('%.0f', generation))
redis.call('EXPIRE', key, daily and 172800 or 2592000)
return { 1, wanted, generation, spent, day }
