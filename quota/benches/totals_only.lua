-- The smallest limiter over a sliding window: a set of admissions with running totals of three
-- dimensions. No pace, queue, lanes, tenants, settlement or learning. The cost of the scripts in
-- lua/ is measured against it.
local ledger, totals = KEYS[1], KEYS[2]
local window, request_limit, input_limit, token_limit = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local input, tokens, now = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local before = redis.call('HMGET', totals, 'requests', 'input', 'tokens')
local requests, inputs, all = tonumber(before[1]) or 0, tonumber(before[2]) or 0, tonumber(before[3]) or 0
local gone = redis.call('ZRANGEBYSCORE', ledger, '-inf', string.format('%.0f', now - window), 'LIMIT', 0, 64)
for index = 1, #gone do
  local its_input, its_tokens = string.match(gone[index], '|(%d+)|(%d+)$')
  requests, inputs, all = requests - 1, inputs - its_input, all - its_tokens
end
if #gone > 0 then
  redis.call('ZREMRANGEBYRANK', ledger, 0, #gone - 1)
end
if requests + 1 > request_limit or inputs + input > input_limit or all + tokens > token_limit then
  return 0
end
redis.call('ZADD', ledger, string.format('%.0f', now), ARGV[1] .. '|' .. ARGV[6] .. '|' .. ARGV[7])
redis.call('HSET', totals, 'requests', requests + 1, 'input', inputs + input, 'tokens', all + tokens)
redis.call('PEXPIRE', ledger, 120000)
redis.call('PEXPIRE', totals, 120000)
return 1
