--[[
Stores the turns of callers without a ticket under names that they come back with, and returns them:
of several turns under one name the earliest.

Guarantees
  * A turn is returned once.
  * An untaken turn lapses. At most `most` turns are stored.
  * Taking is not idempotent: after a lost reply a turn may be gone, and its caller starts anew.

Keys
  KEYS[1] turns  sorted set of one door's key: "<name>:<epoch>:<position>:<number>", by when it
                 lapses

Arguments (times in milliseconds)
  ARGV[1] name      without a colon
  ARGV[2] most      the most turns that are stored
  ARGV[3] lives     after how long the turn lapses; 0 to take one
  ARGV[4] epoch     of the stored ticket, as text
  ARGV[5] position  of the stored ticket, as text

Reply
  to take   epoch and position of the ticket, as texts; nothing if there is none
  to store  1, or 0 if `most` turns are stored
]]
if #ARGV ~= 5 then
  return redis.error_reply('TIDEGATE wants 5 arguments, not ' .. #ARGV)
end
local turns, name = KEYS[1], ARGV[1]
local most, lives = tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

redis.call('ZREMRANGEBYSCORE', turns, '-inf', now)
if lives > 0 then
  if redis.call('ZCARD', turns) >= most then
    return { 0 }
  end
  local stem, number = table.concat({ name, ARGV[4], ARGV[5], '' }, ':'), 0
  while redis.call('ZSCORE', turns, stem .. number) do
    number = number + 1
  end
  redis.call('ZADD', turns, now + lives, stem .. number)
  redis.call('PEXPIRE', turns, math.max(lives, redis.call('PTTL', turns)))
  return { 1 }
end

local earliest, ticket
for _, member in ipairs(redis.call('ZRANGE', turns, 0, -1)) do
  local of, epoch, position = member:match('^(.-):(%d+):(%d+):%d+$')
  if of == name and (not ticket or tonumber(position) < tonumber(ticket[2])) then
    earliest, ticket = member, { epoch, position }
  end
end
if ticket then
  redis.call('ZREM', turns, earliest)
end
return ticket or {}
