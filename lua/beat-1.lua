--[[
Reports a worker as live and counts the live workers.

Guarantees
  * A worker counts until `gone` seconds after its last beat, however it ended.
  * The set expires within a day after the fleet ends.

Keys
  KEYS[1] workers  sorted set, worker by the server's time of its last beat in seconds

Arguments: text
  ARGV[1] worker: a name that no other live worker has
  ARGV[2] gone: whole seconds after which a silent worker no longer counts

Reply: integers
  1 workers  live workers, this one included
]]
local DAY = 86400

local worker, gone = ARGV[1], tonumber(ARGV[2])
if #ARGV ~= 2 or worker == '' or not gone or gone < 1 then
  return redis.error_reply('TIDEGATE wants 2 arguments: a worker and at least 1 second')
end
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, worker)
redis.call('EXPIRE', KEYS[1], DAY)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - gone)
return { redis.call('ZCARD', KEYS[1]) }
