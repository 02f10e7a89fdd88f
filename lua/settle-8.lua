--[[
Ends a reservation: what the call really used, or that it was never sent, or that the provider
refused it.

Guarantees
  * Each reservation is settled once: a second settlement or a late release changes nothing.
  * Less than reserved is given back to totals, pace and queue at once; more is a debt that later
    admissions pay.
  * A refusal by the provider closes the gate for the whole fleet in the same step, and lowers the
    limits for a while; an overload lowers the number of calls in flight and closes nothing.

Keys, all with the hash tag {provider:model}: the first six of reserve-8.lua, and
  KEYS[7] gate     text for people, see include/gate.lua
  KEYS[8] burst    packed doubles, see include/burst.lua

Arguments (numbers packed as little-endian doubles, times in microseconds)
  ARGV[1]  reservation id
  ARGV[2]  what became of it, 22 numbers:
             1       0 released: not sent, nothing was used; 1 settled: the amounts below were used;
                     2 charged: no reservation was made, and the amounts below were used (a worker
                     without Redis)
             2..5    amounts used: requests, input, output, combined tokens
             6       lane, counted from 1; needed only for 2
             7       1 if the provider counts output when the call ends, so that a call that
                     outlived the window is charged for it now
             8       estimated input before correction, 0 to learn nothing from this call
             9, 10   real input and output tokens
             11      the provider's signal: 0 none, 1 refused for a rate, 2 overloaded, 3 exhausted
                     until a reset or a payment, 4 lost: no answer came, so nothing is learned
             12      pause to impose, 0 for none
             13      longest pause
             14      clock for tests, 0 for the server's
             15..18  use in the window by the provider's own meter, plus 1; 0 unknown
             19..22  limits that the provider states, times the margin; 0 unknown
             23      how its meter comes back: 0 or absent unknown; 1 not as a token bucket as deep
                     as a minute; else as one, 2 (4 if its reset is exact) and the part of
                     it that is used
             24      input that a cache gave and the provider does not count, plus 1; 0 or absent
                     unknown
             25      1 if the provider holds `max_tokens` and does not say what it counts in the
                     end: its headers shall tell, see include/counted.lua; 0 or absent not
  ARGV[3]  the model, see include/arguments.lua
  ARGV[4]  reason of the pause

Reply: integers
  1 outcome     1 done, 2 settled before, 0 unknown (long gone, or a restarted server)
  2 pause       microseconds until the gate opens, 0 when it is open
  3 ratio       real over estimated input in millionths, 0 unknown
  4 output      expected output tokens, 0 unknown
  5 cached      input tokens that a cache gives and the provider does not count, 0 unknown
  6 room        if it has just been learned that more may go at once: how much now, in
                microseconds at an even pace; who waits may ask again at once. Else 0
]]
--- @include "include/arguments"
--- @include "include/clock"
--- @include "include/state"
--- @include "include/ledger"
--- @include "include/tuning"
--- @include "include/gate"
--- @include "include/shift"
--- @include "include/closing"
--- @include "include/company"
--- @include "include/burst"
--- @include "include/quota"
--- @include "include/counted"
--- @include "include/headers"
--- @include "include/adapt"
--- @include "include/learned"
--- @include "include/judged"
local UNKNOWN, DONE, BEFORE = 0, 1, 2
local RELEASED, CHARGED = 0, 2
local REFUSED, OVERLOADED, SPENT = 1, 2, 3
local EWMA_ALPHA, OBSERVED_AT, STATED_AT, REFILL, CACHED, ASKS_COUNTED = 0.03, 14, 18, 23, 24, 25

local call, model = read_arguments(4, 2, 22)
if not call then
  return model
end
local id = ARGV[1]
if id == '' then
  return bad_argument(1, 'a reservation id')
end
local mode, signal, lanes = call[1], call[11], (#model - LANE_SHARES) / 2
if mode == CHARGED and (call[6] < 1 or call[6] > lanes or call[6] ~= math.floor(call[6])) then
  return bad_argument(2, 'a call in a lane from 1 to ' .. lanes)
end
local keys = common_keys()
keys.gate, keys.burst = KEYS[7], KEYS[8]
local used, window = { call[2], call[3], call[4], call[5] }, model[WINDOW]
if mode == RELEASED then
  used = { 0, 0, 0, 0 }
end

-- Read.
local quota, outdated = load_quota(keys, model, call[14])
if not quota then
  return outdated
end
local state, now, burst = quota.state, quota.now, quota.burst
if not quota.tuning and (signal == REFUSED or signal == OVERLOADED) then
  state[TUNED] = 1
  quota.tuning = new_tuning(now)
end
local tuning = quota.tuning
local limits = limits_now(model, tuning)
local packed = redis.call('HGET', keys.entries, id)
-- When the call that has ended now was admitted, and what was reserved for it.
local outcome, learned, ended = UNKNOWN, nil, {}

-- Moves the pace clocks by what was used beyond what was reserved, and says by how much the turns
-- behind are to move. A call that used many times what it reserved stops the model for no longer
-- than a window: its tokens leave the ledger by then.
local function move_pace(reserved)
  local longer, slowest, speed = 0, fullest(state, limits), pace_speed(burst, model)
  for dimension = 1, WINDOWED do
    if limits[dimension] > 0 then
      local slot, rate = dimension_slot(dimension) + PACE, limits[dimension] / window
      local after = state[slot] + (used[dimension] - reserved[dimension]) / (rate * speed)
      local ahead = burst and burst.allowance or 0
      state[slot] = math.min(after, math.max(state[slot], now + window + ahead))
      if dimension == slowest then
        longer = (used[dimension] - reserved[dimension] * yield_of(state, dimension)) / rate
      end
    end
  end
  return math.min(longer, window)
end

local function learn_yield(reserved)
  local LEAST_YIELD, MOST_YIELD = 0.02, 3
  for dimension = 1, WINDOWED do
    if limits[dimension] > 0 and reserved[dimension] > 0 then
      local yield = yield_of(state, dimension)
      local seen = math.min(used[dimension] / reserved[dimension], MOST_YIELD)
      state[dimension_slot(dimension) + YIELD] = yield
        + EWMA_ALPHA * (math.max(LEAST_YIELD, seen) - yield)
    end
  end
end

local function correct_day(admitted, reserved)
  local requests, tokens = used[REQUESTS] - reserved[REQUESTS], used[COMBINED] - reserved[COMBINED]
  add_to_day(tuning, model, admitted, requests, tokens)
end

local function learn_latency(took)
  local known = state[LATENCY]
  state[LATENCY] = known > 0 and known + EWMA_ALPHA * (took - known) or took
end

-- Write.
if packed then
  local admitted, lane, condition, reserved = unpack_entry(packed)
  outcome = condition == SETTLED and BEFORE or DONE
  ended = outcome == DONE and { admitted = admitted, amounts = reserved } or ended
  local tells = outcome == DONE and mode ~= RELEASED and signal == 0
  local counts = tells and call[8] > 0 and (call[ASKS_COUNTED] or 0) > 0
  if counts then
    used[COMBINED] = judged(state, used[COMBINED], reserved, call[9], call[10])
  elseif outcome == DONE and not tells then
    -- It failed, or was never made.
    local both = reserved[INPUT] + reserved[OUTPUT]
    add_to_span(state, -both, -math.max(reserved[INPUT], reserved[OUTPUT]), -both)
  end
  if signal == OVERLOADED and outcome == DONE then
    cut_in_flight(tuning, state[dimension_slot(IN_FLIGHT) + TOTAL], now)
  end
  if condition == RESERVED then
    -- The reservation keeps its time of admission, and so its place in the window.
    shift_queue(state, lane, move_pace(reserved))
    add_to_totals(state, lane, reserved, -1, -1)
    if mode == RELEASED then
      redis.call('HDEL', keys.entries, id)
      redis.call('ZREM', keys.ledger, id)
      if admitted == state[OLDEST] then
        refresh_oldest(keys, state)
      end
    else
      if signal == 0 then
        learn_yield(reserved)
      end
      add_to_totals(state, lane, used, 1, 0)
      redis.call('HSET', keys.entries, id, pack_entry(admitted, lane, SETTLED, used))
    end
    correct_day(admitted, reserved)
  elseif condition == OUTLIVED then
    redis.call('ZREM', keys.leases, id)
    correct_day(admitted, reserved)
    if call[7] > 0 and mode ~= RELEASED then
      used = { 0, 0, used[OUTPUT], math.max(0, used[COMBINED] - used[INPUT]) }
      move_pace({ 0, 0, 0, 0 })
      enter(keys, state, now, id, lane, SETTLED, used)
    else
      redis.call('HDEL', keys.entries, id)
    end
  end
  if outcome == DONE then
    add_in_flight(state, lane, -1)
    if tells then
      learn_latency(now - admitted)
      raise_in_flight(tuning)
      if call[8] > 0 then
        local cached = (call[CACHED] or 0) > 0 and call[CACHED] - 1 or nil
        learned = learn(KEYS[6], call[8], call[9], call[10], cached, now - admitted, now)
      end
    end
    if state[CANARY] == admitted and signal ~= REFUSED then
      state[CANARY] = 0
    end
    local limit = call[STATED_AT + COMBINED] > 0 and call[STATED_AT + COMBINED] or limits[COMBINED]
    if counts and is_bucket(burst, model, true) and call[OBSERVED_AT + COMBINED] > 0 then
      judge(state, call[OBSERVED_AT + COMBINED] - 1, limit, window, admitted, now)
    end
    if burst and tells then
      learn_refill(burst, call[REFILL] or 0)
      local believed =
        believe(keys, state, burst, model, tuning, call, OBSERVED_AT, admitted, now)
      if counts and believed then
        learn_unheld(state, burst, reserved[COMBINED], limit, window, admitted, now)
      end
    end
  end
elseif mode == CHARGED then
  outcome = DONE
  move_pace({ 0, 0, 0, 0 })
  add_to_day(tuning, model, now, used[REQUESTS], used[COMBINED])
  enter(keys, state, now, id, call[6], SETTLED, used)
else
  begin_steady(burst, model, now)
end
if signal == REFUSED then
  if burst then
    local credit = credits(burst, state, model, limits, now)
    local alone = state[CANARY] == ended.admitted
    learn_refusal(burst, state, model, limits, credit, alone, now)
  end
  lower_limits(keys, state, tuning, limits, window, ended, now)
end
quota.tuning =
  observe(state, tuning, model, call, OBSERVED_AT, STATED_AT, ended.admitted, now)
local pause = call[12]
if pause > 0 then
  local why = signal == SPENT and EXHAUSTED or PAUSED
  pause = close_gate(keys, state, now, pause, call[13], why, ARGV[4], signal == REFUSED)
else
  pause = closed_for(state, now)
end
save_quota(quota)
local ratio, output, cached = expectation(learned or load_learned(KEYS[6]), now)
local room = room_now(burst, state, model, limits_now(model, quota.tuning), lanes, now)
return { outcome, math.ceil(pause), ratio, output, cached, room }
