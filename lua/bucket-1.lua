--[[
A token bucket for an API that counts calls and not tokens of a model: take, read, return or charge.

Guarantees
  * In any span of t seconds no more is taken than capacity + refill x t, all callers together.
  * All or nothing: a refusal changes nothing.
  * A caller that may wait gets a turn at once, in order of arrival, and need not ask again: the
    promised amount takes the level below zero.
  * A clock that steps back refills nothing. With changed limits the used amount stays.

Keys
  KEYS[1] string: the level and its time in microseconds, two little-endian doubles. Expires when
          the bucket is full again: a missing bucket is full.

Arguments: decimal text
  ARGV[1] amount: 0 to read; below zero to return
  ARGV[2] capacity, at least 1
  ARGV[3] refill in units a second, above 0
  ARGV[4] longest wait in microseconds that may be promised; -1 to charge whatever the level is
  ARGV[5] clock for tests in microseconds, 0 for the server's

Reply: integers
  1 outcome  1 taken, 0 refused, 2 never: more than the capacity
  2 wait     microseconds, rounded up: when taken, until it may be used; when refused, until the
             turn of a caller that waits
  3 level    afterwards, rounded down; below zero when more is promised than there is
]]
if #ARGV ~= 5 then
  return redis.error_reply('TIDEGATE wants 5 arguments, not ' .. #ARGV)
end
local given = {}
for index = 1, 5 do
  local number = tonumber(ARGV[index])
  if not number or number ~= number or math.abs(number) >= 2 ^ 53 then
    return redis.error_reply('TIDEGATE argument ' .. index .. ' must be a number below 2^53')
  end
  given[index] = number
end
local amount, capacity, refill = given[1], given[2], given[3] / 1000000
local longest, now = given[4], given[5]
if capacity < 1 or refill <= 0 then
  return redis.error_reply('TIDEGATE wants a capacity of at least 1 and a refill above 0')
end
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- Read.
local packed, level = redis.call('GET', KEYS[1]), capacity
if packed and #packed == 16 then
  local known, at = struct.unpack('<dd', packed)
  now = math.max(now, at)
  level = math.min(capacity, known + (now - at) * refill)
end
local after = math.min(capacity, level - amount)
local wait = amount > 0 and longest >= 0 and math.ceil(math.max(0, -after / refill)) or 0
if wait > 0 and amount > capacity then
  return { 2, 0, math.floor(level) }
end
if wait > math.max(0, longest) then
  return { 0, wait, math.floor(level) }
end

-- Write.
if amount ~= 0 then
  local full = math.ceil((capacity - after) / refill / 1000) + 1000
  redis.call('SET', KEYS[1], struct.pack('<dd', after, now), 'PX', string.format('%.0f', full))
end
return { 1, wait, math.floor(after) }
