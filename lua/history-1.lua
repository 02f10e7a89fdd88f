--[[
Adds what one worker has seen of a model to the fleet's last hour, and to the counts of the day.

Guarantees
  * A model's history is bounded: 120 slots of half a minute, 14 days.
  * A slot has the highest gauges that any worker has seen in it, and the sums of calls.
  * Asking is not idempotent: after a lost reply calls may be counted twice.

Keys
  KEYS[1] hash: slot:<n>, n from 0 to 119, and day:<n>, n from 0 to 13; each value is the number of
          the half minute or day since 1970, then its whole numbers with spaces between, in the
          order of the arguments; a day's value has no gauges (the first four). Expires 14 days
          after the last write.

Arguments: whole numbers below 2^53 as decimal text
  ARGV[1] used: how full the fullest limit was, in thousandths
  ARGV[2] calls in flight
  ARGV[3] callers that waited for their turn
  ARGV[4] how long the longest queue was, in milliseconds
  ARGV[5] calls answered
  ARGV[6] calls refused for a rate
  ARGV[7] calls that failed otherwise
  ARGV[8] clock for tests in microseconds, 0 for the server's

Reply: 1
]]
--- @include "include/clock"
local SLOT, SLOTS, SECONDS_A_DAY, DAYS, GAUGES = 30, 120, 86400, 14, 4

if #ARGV ~= 8 then
  return redis.error_reply('TIDEGATE wants 8 arguments, not ' .. #ARGV)
end
local given = {}
for index = 1, 8 do
  local number = tonumber(ARGV[index])
  if not number or not (number >= 0 and number < 2 ^ 53) then
    return redis.error_reply('TIDEGATE argument ' .. index .. ' must be a number below 2^53')
  end
  given[index] = math.floor(number)
end

-- The field's new value: its present value with these numbers added if it is of this time, else
-- these numbers alone.
local function merged(field, time, from)
  local known, values = redis.call('HGET', KEYS[1], field), { time }
  local before = {}
  for word in string.gmatch(known or '', '%d+') do
    before[#before + 1] = tonumber(word)
  end
  local same = before[1] == time
  for index = from, 7 do
    local was = same and before[index - from + 2] or 0
    local sum = index <= GAUGES and math.max(was, given[index]) or was + given[index]
    values[#values + 1] = sum
  end
  for index = 1, #values do
    values[index] = string.format('%.0f', values[index])
  end
  return table.concat(values, ' ')
end

local now = math.floor(clock(given[8]) / 1000000)
local slot, day = math.floor(now / SLOT), math.floor(now / SECONDS_A_DAY)
local of_slot, of_day = 'slot:' .. slot % SLOTS, 'day:' .. day % DAYS
local hour, days = merged(of_slot, slot, 1), merged(of_day, day, GAUGES + 1)
redis.call('HSET', KEYS[1], of_slot, hour, of_day, days)
redis.call('EXPIRE', KEYS[1], DAYS * SECONDS_A_DAY)
return { 1 }
