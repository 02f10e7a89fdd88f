--[[
Enters a provider's batch into the count of the input tokens of one model that wait at the provider,
or removes it.

Guarantees
  * All batches together stay within the limit. A single batch is entered whatever it holds: it
    would otherwise never be.
  * An id is entered once; entering it again replaces its tokens.
  * A batch that is not removed drops out after its life.
  * Costs O(n) in batches that wait: some hundred in a large fleet, a few times a minute.

Keys
  KEYS[1] enqueued  hash, a batch's id to its tokens and the server's time in seconds until which
                    they count, with a space between

Arguments
  ARGV[1] id      the batch
  ARGV[2] tokens  its input tokens; 0 removes it
  ARGV[3] limit   the input tokens that the provider lets wait
  ARGV[4] life    seconds after which it no longer counts

Reply: integers
  1 entered  1, or 0: its tokens stay as before
  2 others   input tokens of the other batches
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
