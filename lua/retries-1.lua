--[[
Counts one more provider call beyond the first of a document of a batch.

Guarantees
  * The count never falls while the batch makes such calls; it ends seven days after the last.
  * Asking is not idempotent: after a lost reply the call may have been counted.

Keys
  KEYS[1] retries  string, the calls counted so far

Arguments: none

Reply: integers
  1 retries  the calls counted so far, this one included
]]
local A_WEEK = 604800

if #ARGV ~= 0 then
  return redis.error_reply('TIDEGATE wants no arguments, not ' .. #ARGV)
end
local retries = redis.call('INCR', KEYS[1])
redis.call('EXPIRE', KEYS[1], A_WEEK)
return { retries }
