--[[
Replaces what is held for a call by what it cost; a cost of 0 releases it.

Guarantees
  * Each id is settled once: a second settlement changes nothing, nor does one of a call that is not
    held (its day has ended, or the server has forgotten it).
  * More than was held is charged in full, even beyond the budget: later calls are then refused.

Keys: as budget-reserve-1.lua

Arguments
  ARGV[1] reservation id
  ARGV[2] cost in nano-dollars, 10^-9 USD: a whole number below 2^53 as decimal text

Reply: integers
  1 outcome  1 done, 0 not held
]]
local key, field = KEYS[1], 'hold:' .. (ARGV[1] or '')
if #ARGV ~= 2 or not string.match(ARGV[2], '^%d+$') or tonumber(ARGV[2]) >= 2 ^ 53 then
  return redis.error_reply('TIDEGATE wants 2 arguments, the second a whole number below 2^53')
end
local held = redis.call('HGET', key, field)
if not held then
  return { 0 }
end
local spent = redis.call('HGET', key, 'spent') - held + ARGV[2]
redis.call('HDEL', key, field, 'until:' .. ARGV[1])
redis.call('HSET', key, 'spent', string.format('%.0f', spent))
return { 1 }
