--[[
Tells what a model's quota looks like now. Takes out what has left the window, and changes nothing else.

Keys: the first four of reserve-5.lua

Arguments (times in microseconds)
  ARGV[1]  window
  ARGV[2]  lanes that the caller knows
  ARGV[3]  clock for tests, 0 for the server's

Reply: integers, and the reason last
  1 now           microseconds since 1970 by the server's clock
  2 pause         microseconds until the gate opens, 0 when it is open
  3 reservations  in the window
  4 lanes         how many follow
  then for each dimension (requests, input, output, combined): total in the window, microseconds that the pace is ahead
  then for each lane: calls in flight, microseconds that a newcomer would wait for its turn, total of each dimension
  then the reason of the pause, empty when the gate is open
]]
local ledger_key, entries_key, state_key, gate_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if #ARGV ~= 3 then
  return redis.error_reply('TIDEGATE wants 3 arguments, not ' .. #ARGV)
end
local argument = {}
local refused = read_numbers(argument, 1, 3)
if refused then
  return refused
end
local window = argument[1]
if window < 1 then
  return bad_argument(1, 'a window of at least 1 microsecond')
end
local state, now = load_state(state_key, ledger_key, entries_key, argument[2], clock(argument[3]))
expire(ledger_key, entries_key, state, now, window)
save_state(state_key, state, window)
local pause, reason = gate_state(gate_key, now)
local lanes = state[LANES]
local reply = { now, math.ceil(pause), redis.call('ZCARD', ledger_key), lanes }
for dimension = 1, DIMENSIONS do
  local slot = dimension_slot(dimension)
  reply[#reply + 1] = math.ceil(state[slot + TOTAL])
  reply[#reply + 1] = math.ceil(math.max(0, state[slot + PACE] - now))
end
for lane = 1, lanes do
  local slot = lane_slot(lane)
  reply[#reply + 1] = state[slot + IN_FLIGHT]
  reply[#reply + 1] = math.ceil(math.max(0, state[slot + TAIL] + state[slot + SHIFT] - now))
  for dimension = 1, DIMENSIONS do
    reply[#reply + 1] = math.ceil(state[slot + USED + dimension])
  end
end
reply[#reply + 1] = reason
return reply
