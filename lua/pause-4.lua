--[[
Closes the gate of a model for the whole fleet, or opens it.

Guarantees
  * A pause never shortens one in force, and ends by itself after its time to live at the latest.
  * Every queue moves by the length of the pause, so that tickets keep their order and their spacing.

Keys: the first four of reserve-5.lua

Arguments (times in microseconds)
  ARGV[1]  pause from now, 0 to open the gate
  ARGV[2]  longest pause
  ARGV[3]  window
  ARGV[4]  reason
  ARGV[5]  clock for tests, 0 for the server's

Reply: integers
  1 pause  microseconds until the gate opens, 0 when it is open
]]
local ledger_key, entries_key, state_key, gate_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if #ARGV ~= 5 then
  return redis.error_reply('TIDEGATE wants 5 arguments, not ' .. #ARGV)
end
local argument = {}
local refused = read_numbers(argument, 1, 3) or read_numbers(argument, 5, 5)
if refused then
  return refused
end
local pause, window = argument[1], argument[3]
if window < 1 then
  return bad_argument(3, 'a window of at least 1 microsecond')
end
local state, now = load_state(state_key, ledger_key, entries_key, 1, clock(argument[5]))
if pause > 0 then
  pause = close_gate(gate_key, state, now, pause, argument[2], ARGV[4])
else
  open_gate(gate_key, state, now)
end
save_state(state_key, state, window)
return { math.ceil(pause) }
