--[[
Enters a batch of a provider's in what the fleet has waiting there, or takes it out: what one
model's batches hold of the input tokens that the provider lets wait.

Guarantees
  * What is entered is within the limit together; a batch that is alone is entered whatever it
    holds, for it would else never be.
  * An id is entered once: again, it holds what was said last.
  * What nobody takes out leaves by itself after its time.
  * Costs O(n) in batches that wait: some hundred in a large fleet, a few times a minute.

Keys
  KEYS[1] enqueued  hash, a batch's id to its tokens and the server's time in seconds until which
                    they count, with a space between

Arguments
  ARGV[1] id      the batch
  ARGV[2] tokens  what it holds; 0 takes it out
  ARGV[3] limit   what the provider lets wait
  ARGV[4] life    seconds after which it counts no more

Reply: integers
  1 entered  1, or 0: it holds what it held before
  2 others   tokens that other batches hold
]]
local waiting = KEYS[1]
if #ARGV ~= 4 then
  return redis.error_reply('TIDEGATE wants 4 arguments, not ' .. #ARGV)
end
local id, tokens = ARGV[1], tonumber(ARGV[2])
local limit, life = tonumber(ARGV[3]), tonumber(ARGV[4])
local MOST = 9007199254740992
for place = 2, 4 do
  local number = tonumber(ARGV[place])
  if not number or not (number >= 0 and number <= MOST) or number ~= math.floor(number) then
    return redis.error_reply('TIDEGATE argument ' .. place .. ' must be a whole number')
  end
end

local now, others = tonumber(redis.call('TIME')[1]), 0
local all, over = redis.call('HGETALL', waiting), {}
for place = 1, #all, 2 do
  local held, ends = string.match(all[place + 1], '^(%d+) (%d+)$')
  if not held or tonumber(ends) <= now then
    over[#over + 1] = all[place]
  elseif all[place] ~= id then
    others = others + tonumber(held)
  end
end
for _, gone in ipairs(over) do
  redis.call('HDEL', waiting, gone)
end
if tokens == 0 then
  redis.call('HDEL', waiting, id)
  return { 1, others }
end
if others > 0 and others + tokens > limit then
  return { 0, others }
end
redis.call('HSET', waiting, id, string.format('%.0f %.0f', tokens, now + life))
redis.call('EXPIRE', waiting, life)
return { 1, others }
