--[[
Stores the turns of callers without a ticket under names that they come back with, and returns them:
of several turns under one name the earliest.

Guarantees
  * A turn is returned once.
  * An untaken turn lapses. At most `most` turns are stored.
  * Costs O(log n) in stored turns, and as much for each turn that has lapsed since the last call.
  * Taking is not idempotent: after a lost reply a turn may be gone, and its caller starts anew.

Keys, both with one hash tag; both have the turns of one door's key as
"<name>:<epoch>:<position>:<number>"
  KEYS[1] turns  sorted set, by when they lapse
  KEYS[2] names  sorted set, all scores 0: the turns of a name are side by side, the earliest first

Arguments (times in milliseconds)
  ARGV[1] name      without a colon
  ARGV[2] most      the most turns that are stored
  ARGV[3] lives     after how long the turn lapses; 0 to take one
  ARGV[4] epoch     of the stored ticket, as text of 20 digits
  ARGV[5] position  of the stored ticket, as text of 20 digits

Reply
  to take   epoch and position of the ticket, as texts of 20 digits; nothing if there is none
  to store  1, or 0 if `most` turns are stored
]]
if #ARGV ~= 5 then
  return redis.error_reply('TIDEGATE wants 5 arguments, not ' .. #ARGV)
end
local turns, names, name = KEYS[1], KEYS[2], ARGV[1]
local most, lives = tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

for _, lapsed in ipairs(redis.call('ZRANGEBYSCORE', turns, '-inf', now)) do
  redis.call('ZREM', turns, lapsed)
  redis.call('ZREM', names, lapsed)
end
if lives > 0 then
  if redis.call('ZCARD', turns) >= most then
    return { 0 }
  end
  local stem, number = table.concat({ name, ARGV[4], ARGV[5], '' }, ':'), 0
  while redis.call('ZSCORE', turns, stem .. number) do
    number = number + 1
  end
  redis.call('ZADD', turns, now + lives, stem .. number)
  redis.call('ZADD', names, 0, stem .. number)
  local longest = math.max(lives, redis.call('PTTL', turns))
  redis.call('PEXPIRE', turns, longest)
  redis.call('PEXPIRE', names, longest)
  return { 1 }
end

-- ';' is the character after ':'.
local first, after = '[' .. name .. ':', '(' .. name .. ';'
local earliest = redis.call('ZRANGEBYLEX', names, first, after, 'LIMIT', 0, 1)[1]
if not earliest then
  return {}
end
redis.call('ZREM', turns, earliest)
redis.call('ZREM', names, earliest)
return { earliest:match(':(%d+):(%d+):%d+$') }
