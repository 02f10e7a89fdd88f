--[[
Stores the status of each worker, and returns the statuses of the live workers.

Guarantees
  * A status counts until `gone` seconds after its last report, however the worker ended.
  * The hash expires within a day after the fleet ends.

Keys
  KEYS[1] hash: worker → the server's time of the report in whole seconds, a space, the status

Arguments: text
  ARGV[1] worker: a name that no other live worker has; empty to read only
  ARGV[2] its status, without any credential; empty to remove the worker
  ARGV[3] gone: whole seconds after which a status that is not repeated no longer counts
  ARGV[4] 1 to return all statuses, 0 for an empty reply

Reply: worker, status, worker, status, … in no order
]]
local DAY = 86400

local worker, words, gone = ARGV[1], ARGV[2], tonumber(ARGV[3])
if #ARGV ~= 4 or not gone or gone < 1 then
  return redis.error_reply('TIDEGATE wants 4 arguments, the third at least 1 second')
end
local now = tonumber(redis.call('TIME')[1])
if worker ~= '' and words == '' then
  redis.call('HDEL', KEYS[1], worker)
elseif worker ~= '' then
  redis.call('HSET', KEYS[1], worker, string.format('%.0f', now) .. ' ' .. words)
  redis.call('EXPIRE', KEYS[1], DAY)
end
if ARGV[4] ~= '1' then
  return {}
end
local said, live = redis.call('HGETALL', KEYS[1]), {}
for index = 1, #said, 2 do
  local time, text = string.match(said[index + 1], '^(%d+) (.*)$')
  if time and tonumber(time) > now - gone then
    live[#live + 1] = said[index]
    live[#live + 1] = text
  else
    redis.call('HDEL', KEYS[1], said[index])
  end
end
return live
