--[[
Opens a budget with what has been spent of it, or sets what has been spent.

Guarantees
  * A budget that is there stays as it is, unless it is to be set.
  * What calls under way hold stays held, beside what is set.

Keys: as budget-reserve-1.lua

Arguments: whole numbers below 2^53 as decimal text; amounts in nano-dollars, 10^-9 USD
  ARGV[1] spent
  ARGV[2] ceiling: 2^53 - 1 for none
  ARGV[3] 1 when the budget is for a day, 0 when it never begins anew
  ARGV[4] 1 to set a budget that is there, 0 to leave it
  ARGV[5] clock for tests in microseconds, 0 for the server's

Reply: integers
  1 outcome  1 done, 0 it was there
]]
local key, daily, now = KEYS[1], ARGV[3] == '1', tonumber(ARGV[5])
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
local day = daily and math.floor(now / 86400000000) or 0
local known = redis.call('HMGET', key, 'spent', 'day', 'ceiling')
if known[1] and ARGV[4] ~= '1' then
  return { 0 }
end
local spent, ceiling = tonumber(ARGV[1]), tonumber(ARGV[2])
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
redis.call('HSET', key, 'spent', string.format('%.0f', spent), 'day', day)
if ceiling < 2 ^ 53 - 1 or known[3] then
  -- Whoever keeps checkpoints writes one before the next call.
  redis.call('HSET', key, 'ceiling', string.format('%.0f', ceiling < 2 ^ 53 - 1 and ceiling or 0))
end
redis.call('EXPIRE', key, daily and 172800 or 2592000)
return { 1 }
