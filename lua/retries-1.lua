--[[
Counts one more provider call beyond the first of a document of a batch.

Guarantees
  * The counts never fall while the batch makes such calls; they end seven days after the last.
  * A document adds to the batch's budget once, however often this is repeated.
  * Asking is not idempotent: after a lost reply the call may have been counted.

Keys
  KEYS[1] retries  hash: spent, the calls counted so far; added, the calls that documents in parts
                   add to the budget; of:<document>, the calls that one of them has added

Arguments
  ARGV[1] document  which document adds to the budget, unique in the batch; empty for none
  ARGV[2] adds      how many calls it adds

Reply: integers
  1 spent  the calls counted so far, this one included
  2 added  the calls that documents have added to the budget
]]
local RETRIES_TTL = 604800

if #ARGV ~= 2 then
  return redis.error_reply('TIDEGATE wants 2 arguments, not ' .. #ARGV)
end
local retries, document, adds = KEYS[1], ARGV[1], tonumber(ARGV[2])
if document ~= '' and redis.call('HSETNX', retries, 'of:' .. document, adds) == 1 then
  redis.call('HINCRBY', retries, 'added', adds)
end
local spent = redis.call('HINCRBY', retries, 'spent', 1)
redis.call('EXPIRE', retries, RETRIES_TTL)
return { spent, tonumber(redis.call('HGET', retries, 'added') or 0) }
