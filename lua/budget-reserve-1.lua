--[[
Holds in a budget what one call may cost, or says how much is left.

Guarantees
  * A call is held only if everything spent and held, this call included, stays within the budget.
  * The same id is held once: asking again after a lost reply answers as the first time and costs
    nothing.
  * A refusal changes nothing.
  * What is held for a caller that died stays charged: the provider may have been paid.

Keys
  KEYS[1] hash: `spent`, settled and held together; `day` that it belongs to, counted from
          1970-01-01; and for each call that is held `hold:<id>`, its amount. Lives for two days
          after the last call held, without days for 30.

Arguments: whole numbers below 2^53 as decimal text; amounts in nano-dollars, 10^-9 USD
  ARGV[1] reservation id, unique to one attempt; not asked for again once it is settled
  ARGV[2] amount: the most that the call should cost
  ARGV[3] budget
  ARGV[4] 1 when the budget is for a day and begins anew at 00:00 UTC, 0 when it never does
  ARGV[5] clock for tests in microseconds, 0 for the server's

Reply: integers
  1 outcome  1 held, 0 refused
  2 left     nano-dollars of the budget that are neither spent nor held
  3 reset    microseconds until the day ends, 0 when it never does
]]
local key, id, day_length = KEYS[1], ARGV[1], 86400000000
if #ARGV ~= 5 or id == '' then
  return redis.error_reply('TIDEGATE wants 5 arguments, the first a reservation id')
end
for index = 2, 5 do
  local number = tonumber(ARGV[index])
  if not string.match(ARGV[index], '^%d+$') or number >= 2 ^ 53 then
    return redis.error_reply('TIDEGATE argument ' .. index .. ' must be a whole number below 2^53')
  end
end
local amount, budget = tonumber(ARGV[2]), tonumber(ARGV[3])
local daily, now = ARGV[4] == '1', tonumber(ARGV[5])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- Read. A clock that steps back over midnight must not give yesterday's budget out again.
local known = redis.call('HMGET', key, 'spent', 'day', 'hold:' .. id)
local spent, day = tonumber(known[1] or 0), tonumber(known[2] or 0)
local today = daily and math.floor(now / day_length) or 0
local held, ended = known[3], today > day
if ended then
  spent, day, held = 0, today, false
end
local reset = daily and (day + 1) * day_length - now or 0
if not held and spent + amount > budget then
  return { 0, math.max(0, budget - spent), reset }
end

-- Write.
if not held then
  if ended then
    redis.call('DEL', key)
  end
  spent = spent + amount
  redis.call('HSET', key, 'spent', string.format('%.0f', spent), 'day', day, 'hold:' .. id, ARGV[2])
  redis.call('EXPIRE', key, daily and 172800 or 2592000)
end
return { 1, math.max(0, budget - spent), reset }
