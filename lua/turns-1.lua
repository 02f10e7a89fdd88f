--[[
Keeps the turns of callers that know no ticket, under names that they come back with, and gives them
out again: of several turns under one name the earliest.

Guarantees
  * A turn is given out once.
  * A turn that nobody has taken lapses. No more than so many are kept.
  * Asking is not idempotent: after a lost reply a turn may have been given out, and its caller is a
    newcomer.

Keys
  KEYS[1] turns  sorted set of one door's key: "<name>:<epoch>:<position>:<number>", by when it
                 lapses

Arguments (times in milliseconds)
  ARGV[1] name      without a colon
  ARGV[2] most      how many turns are kept
  ARGV[3] lives     after how long the turn lapses; 0 to take one
  ARGV[4] epoch     of the ticket that is kept, as text
  ARGV[5] position  of the ticket that is kept, as text

Reply
  to take  epoch and position of the ticket, as texts; nothing where none is kept
  to keep  1, or 0 where as many are kept already
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
