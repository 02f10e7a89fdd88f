--[[
Ends a reservation: what the call really used, or that it was never sent, or that the provider refused it.

Guarantees
  * Each reservation is settled once: a second settlement or a late release changes nothing.
  * Less than reserved is given back to totals, pace and queue at once; more is a debt that later admissions pay.
  * A refusal by the provider closes the gate for the whole fleet in the same step.

Keys: as reserve-5.lua

Arguments (times in microseconds)
  ARGV[1]       reservation id
  ARGV[2]       0 released: not sent, nothing was used; 1 settled: the amounts below were used
  ARGV[3..6]    amounts used: requests, input, output, combined tokens
  ARGV[7..10]   limits of a window in the same order, 0 for none
  ARGV[11]      window
  ARGV[12]      estimated input before correction, 0 to learn nothing from this call
  ARGV[13]      real input tokens
  ARGV[14]      real output tokens
  ARGV[15]      pause to impose, 0 for none
  ARGV[16]      longest pause
  ARGV[17]      reason of the pause
  ARGV[18]      clock for tests, 0 for the server's

Reply: integers
  1 outcome     1 done, 2 settled before, 0 unknown (left the window, or a restarted server)
  2 pause       microseconds until the gate opens, 0 when it is open
  3 ratio       real over estimated input in millionths, 0 unknown
  4 output      expected output tokens, 0 unknown
]]
local FORGET = 0.1
local ledger_key, entries_key, state_key, gate_key, learned_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
if #ARGV ~= 18 then
  return redis.error_reply('TIDEGATE wants 18 arguments, not ' .. #ARGV)
end
local argument = {}
local refused = read_numbers(argument, 2, 16) or read_numbers(argument, 18, 18)
if refused then
  return refused
end
local id, settled, used, limits, window = ARGV[1], argument[2] == 1, four(argument, 3), four(argument, 7), argument[11]
if window < 1 then
  return bad_argument(11, 'a window of at least 1 microsecond')
end

-- Read.
local state, now = load_state(state_key, ledger_key, entries_key, 1, clock(argument[18]))
expire(ledger_key, entries_key, state, now, window)
local packed = redis.call('HGET', entries_key, id)
local outcome, learned = 0, nil
if packed then
  local admitted, lane, before, reserved = unpack_entry(packed)
  outcome = 2
  if before == 0 then
    -- Write. The reservation keeps its time of admission, and so its place in the window.
    outcome = 1
    if not settled then
      used = { 0, 0, 0, 0 }
    end
    local reserved_turn, used_turn = 0, 0
    add_to_totals(state, lane, reserved, -1)
    add_to_totals(state, lane, used, 1)
    for dimension = 1, DIMENSIONS do
      if limits[dimension] > 0 then
        local slot, rate = dimension_slot(dimension) + PACE, limits[dimension] / window
        state[slot] = state[slot] + (used[dimension] - reserved[dimension]) / rate
        reserved_turn = math.max(reserved_turn, reserved[dimension] / rate)
        used_turn = math.max(used_turn, used[dimension] / rate)
      end
    end
    local lane_at = lane_slot(lane)
    local yield = lane_yield(state, lane)
    shift_queue(state, lane, used_turn - reserved_turn * yield)
    if settled and reserved_turn > 0 then
      local seen = math.max(0.1, math.min(used_turn / reserved_turn, 3))
      state[lane_at + YIELD] = yield + FORGET * (seen - yield)
    end
    state[lane_at + IN_FLIGHT] = math.max(0, state[lane_at + IN_FLIGHT] - 1)
    if settled then
      redis.call('HSET', entries_key, id, pack_entry(admitted, lane, 1, used))
      if argument[12] > 0 then
        learned = learn(learned_key, argument[12], argument[13], argument[14], now - admitted, 1440 * window)
      end
    else
      redis.call('HDEL', entries_key, id)
      redis.call('ZREM', ledger_key, id)
      refresh_oldest(ledger_key, state)
    end
  end
end
local pause = argument[15]
if pause > 0 then
  pause = close_gate(gate_key, state, now, pause, argument[16], ARGV[17])
else
  pause = gate_state(gate_key, now)
end
save_state(state_key, state, window)
local ratio, output = expectation(learned or load_learned(learned_key))
return { outcome, math.ceil(pause), ratio, output }
