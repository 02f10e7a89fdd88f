--[[
Holds in a budget what one call may cost, or says how much is left.

Guarantees
  * A call is held only if everything spent and held, this call included, stays within the budget,
    and within its ceiling where there is one (see budget-checkpoint-1.lua).
  * An id is held once: asking again after a lost reply gives the first answer and costs nothing.
  * A refusal changes nothing.
  * What is held for a caller that died stays charged: the provider may have been paid.

Keys
  KEYS[1] hash: `spent`, settled and held together; its `day`, counted from 1970-01-01; for each
          held call `hold:<id>`, its amount, and `until:<id>`, when it counts as spent; `ceiling`
          and `generation` of the last checkpoint. Expires two days after the last held call, or
          after 30 days for a budget without days.

Arguments: whole numbers below 2^53 as decimal text; amounts in nano-dollars, 10^-9 USD
  ARGV[1] reservation id, unique to one attempt; not asked for again once it is settled
  ARGV[2] amount: the most that the call should cost
  ARGV[3] budget
  ARGV[4] 1 when the budget is for a day and begins anew at 00:00 UTC, 0 when it never does
  ARGV[5] clock for tests in microseconds, 0 for the server's
  ARGV[6] lease: microseconds after which an unsettled hold counts as spent; 0 or left out for at
          once
  ARGV[7] 1 when the budget has been opened, so that a missing one is lost; 0 or left out when it
          may begin with this call

Reply: integers
  1 outcome    1 held, 0 refused, 2 lost, 3 beyond the ceiling: to be asked again after a checkpoint
  2 left       nano-dollars of the budget that are neither spent nor held
  3 reset      microseconds until the day ends, 0 when it never does
  4 returning  when refused: nano-dollars that calls under way hold, and may give back
  5 day        the budget's day, 0 without days
]]
--- @include "include/clock"
--- @include "include/budget"
local given, refused = budget_arguments(2, 5, 7)
if not given then
  return refused
end
local key, id, amount, budget, daily = KEYS[1], given[1], given[2], given[3], given[4] == 1
local now, lease, opened = clock(given[5]), given[6] or 0, given[7] == 1
if id == '' then
  return redis.error_reply('TIDEGATE argument 1 must be a reservation id')
end

-- Read. A clock that steps back over midnight must not give out yesterday's budget again.
local known = redis.call('HMGET', key, 'spent', 'day', 'hold:' .. id, 'ceiling')
local spent, day = tonumber(known[1] or 0), tonumber(known[2] or 0)
local today = budget_day(daily, now)
local held, ended, ceiling = known[3], today > day, tonumber(known[4] or budget)
if ended then
  spent, day, held = 0, today, false
  ceiling = known[4] and 0 or budget
end
local reset = daily and (day + 1) * A_DAY - now or 0
local left = math.max(0, budget - spent)
if opened and not known[1] then
  return { 2, left, reset, 0, day }
end
if not held and spent + amount > budget then
  local returning, all = 0, ended and {} or redis.call('HGETALL', key)
  local amounts = {}
  for index = 1, #all, 2 do
    amounts[all[index]] = all[index + 1]
  end
  for field, value in pairs(amounts) do
    local call = string.match(field, '^until:(.*)$')
    if call and tonumber(value) > now then
      returning = returning + (amounts['hold:' .. call] or 0)
    end
  end
  return { 0, left, reset, returning, day }
end
if not held and spent + amount > ceiling then
  return { 3, left, reset, 0, day }
end

-- Write.
if not held then
  if ended then
    redis.call('DEL', key)
    if known[4] then
      redis.call('HSET', key, 'ceiling', '0')
    end
  end
  spent = spent + amount
  local amount_text = format_whole(amount)
  redis.call('HSET', key, 'spent', format_whole(spent), 'day', day, 'hold:' .. id, amount_text)
  if lease > 0 then
    redis.call('HSET', key, 'until:' .. id, format_whole(now + lease))
  end
  keep_budget(key, daily)
end
return { 1, math.max(0, budget - spent), reset, 0, day }
