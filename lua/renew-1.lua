--[[
Renews the lease of a call that has outlived the window, so that it still counts as in flight.

Keys
  KEYS[1] leases   sorted set, id of a call that outlived the window by the end of its lease

Arguments (numbers packed as little-endian doubles, times in microseconds)
  ARGV[1]  reservation id
  ARGV[2]  2 numbers: lease from now; clock for tests, 0 for the server's

Reply: integers
  1 renewed  1, or 0 when there is no such lease (it has ended, or the call is still in the window)
]]
--- @include "include/numbers"
--- @include "include/arguments"
--- @include "include/clock"
if #ARGV ~= 2 then
  return redis.error_reply('TIDEGATE wants 2 arguments, not ' .. #ARGV)
end
local call, refused = read_numbers(2, 2, 0)
if refused then
  return refused
end
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  return { 0 }
end
redis.call('ZADD', KEYS[1], string.format('%.0f', clock(call[2]) + call[1]), ARGV[1])
return { 1 }
