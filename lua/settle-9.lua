--[[
Ends a reservation of a call that was answered, refused by the provider, or never sent. May hand the
policy's task to the caller.

Guarantees
  * Each reservation is settled once: a second settlement or a late release changes nothing.
  * Less than reserved is given back to levels and window at once; more is a debt that later
    admissions pay.
  * A refusal by the provider closes the gate for the whole fleet in the same step, and is logged
    for the policy; an overload lowers the number of calls in flight and closes nothing.
  * The policy's task is handed to one caller at a time.

Keys, all with the hash tag {provider:model}: the first six of reserve-7.lua, and
  KEYS[7] gate     text for people, see include/gate.lua
  KEYS[8] log      list, see include/log.lua
  KEYS[9] known    what the policy knows, which scripts only carry

Arguments (numbers packed as little-endian doubles, times in microseconds)
  ARGV[1]  reservation id
  ARGV[2]  the outcome, 31 numbers:
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
             19..22  limits that the provider states, plus 1; 0 unknown
             23..26  time until the used amount is all available again, plus 1; 0 unknown
             27      input that a cache gave and the provider does not count, plus 1; 0 unknown
             28..31  for 2: how much of the amounts used has not refilled yet
  ARGV[3]  the quota, see include/arguments.lua
  ARGV[4]  reason of the pause

Reply
  1 outcome     1 done, 2 settled before, 0 unknown (long gone, or a restarted server)
  2 pause       microseconds until the gate opens, 0 when it is open
  3 ratio       real over estimated input in millionths, 0 unknown
  4 output      expected output tokens, 0 unknown
  5 cached      input tokens that a cache gives and the provider does not count, 0 unknown
  6 room        the room that is left now, as the time that an even pace takes to use it: the first
                callers in turn may ask again at once, as far as there is room
  then nothing more, or the policy's task, see include/log.lua
]]
--- @include "include/numbers"
--- @include "include/arguments"
--- @include "include/clock"
--- @include "include/state"
--- @include "include/entries"
--- @include "include/levels"
--- @include "include/holds"
--- @include "include/gate"
--- @include "include/day"
--- @include "include/learned"
--- @include "include/log"
local UNKNOWN, DONE, BEFORE = 0, 1, 2
local RELEASED, CHARGED = 0, 2
local NONE, REFUSED_BY, OVERLOADED, SPENT_OUT = 0, 1, 2, 3
local METER_USED, METER_LIMIT, METER_RESET, CACHED, DRAWN_ALONE = 14, 18, 22, 27, 27
local NUMBERS_OF_A_SETTLEMENT = 31

local call, quota = read_arguments(4, 2, NUMBERS_OF_A_SETTLEMENT)
if not call then
  return quota
end
local id = ARGV[1]
if id == '' then
  return bad_argument(1, 'a reservation id')
end
local mode, signal, lane = call[1], call[11], call[6]
if mode == CHARGED and not is_lane(lane, quota) then
  return bad_argument(2, 'a call in a lane of the quota')
end
local keys = common_keys()
keys.gate, keys.log, keys.known = KEYS[7], KEYS[8], KEYS[9]
local used = { call[2], call[3], call[4], call[5] }
if mode == RELEASED then
  used = { 0, 0, 0, 0 }
end
local state, now = load_quota(keys, quota, call[14])
if not state then
  return now
end

-- Ends a call's time in flight and corrects its charge.
local function end_call(entry)
  local more = {}
  for dimension = 1, DIMENSIONS do
    more[dimension] = used[dimension] - entry.amounts[dimension]
  end
  draw(state, more)
  add_to_day(keys, quota, entry.admitted, more[REQUESTS], more[COMBINED], now)
  add_in_flight(state, entry.lane, -1)
  if entry.condition == OUTLIVED then
    redis.call('ZREM', keys.leases, id)
    redis.call('HDEL', keys.entries, id)
    if call[7] > 0 and mode ~= RELEASED then
      local output = { 0, 0, used[OUTPUT], math.max(0, used[COMBINED] - used[INPUT]) }
      entry.admitted, entry.condition, entry.amounts, entry.progress = now, SETTLED, output, 0
      insert_entry(keys, state, id, entry)
    end
    return
  end
  add_to_window(state, entry, -1)
  if mode == RELEASED then
    redis.call('HDEL', keys.entries, id)
    redis.call('ZREM', keys.ledger, id)
    if entry.admitted == state[OLDEST] then
      refresh_oldest(keys, state)
    end
    return
  end
  -- The entry keeps its time of admission, and so its position in the window.
  entry.amounts, entry.condition = used, SETTLED
  add_to_window(state, entry, 1)
  keep_entry(keys, id, entry)
end

-- Halves the calls in flight after an overload. A call that was sent before the last overload was
-- known shows nothing new.
local function record_overload(admitted)
  if state[CAP] == 0 or admitted > state[CAPPED_AT] then
    local flight = state[FLIGHT]
    state[CAP_PEAK] = math.max(state[CAP_PEAK], flight)
    local known = state[CAP] > 0 and math.min(state[CAP], flight) or flight
    state[CAP], state[CAPPED_AT] = math.max(1, known * HALF), now
  end
end

local function meter(dimension)
  return call[METER_USED + dimension] - 1,
    call[METER_LIMIT + dimension] - 1,
    call[METER_RESET + dimension] - 1
end

-- Learns from a call that went well. Returns what is known of its template now.
local function record_answer(entry)
  local took = now - entry.admitted
  local mean = state[LATENCY]
  state[LATENCY] = mean > 0 and mean + (1 - FADE) * (took - mean) or took
  if state[CAP] > 0 then
    state[CAP] = state[CAP] + math.max(1, REGAIN * state[CAP_PEAK]) / state[CAP]
    if state[CAP] >= state[CAP_PEAK] then
      state[CAP], state[CAP_PEAK] = 0, 0
    end
  end
  if entry.probe == 1 and now >= state[GATE] then
    open_gate(state)
  end
  state[ANSWERS] = state[ANSWERS] + 1
  if call[8] > 0 then
    local cached = call[CACHED] > 0 and call[CACHED] - 1 or nil
    return learn(KEYS[6], entry.amounts[OUTPUT], call[8], call[9], call[10], cached, took)
  end
end

local outcome, learned = UNKNOWN, nil
local packed = redis.call('HGET', keys.entries, id)
if packed then
  local entry = unpack_entry(packed)
  outcome = entry.condition == SETTLED and BEFORE or DONE
  if outcome == DONE then
    local before = state_before(state, entry)
    local was = { admitted = entry.admitted, probe = entry.probe, amounts = entry.amounts }
    if signal == OVERLOADED then
      record_overload(entry.admitted)
    end
    end_call(entry)
    if before and mode ~= RELEASED then
      log_meter(keys, state, before, meter, now)
    end
    if before and signal == REFUSED_BY then
      log_refusal(keys, state, before, was, call[12], now)
    end
    if signal == NONE and mode ~= RELEASED then
      learned = record_answer(was)
    end
  end
elseif mode == CHARGED then
  outcome = DONE
  draw(state, { unpack(call, DRAWN_ALONE + 1, DRAWN_ALONE + DIMENSIONS) })
  add_to_day(keys, quota, now, used[REQUESTS], used[COMBINED], now)
  local passed = lane_slot(lane) + PASSED
  state[passed] = state[passed] + work_of(state, used)
  local entry = { admitted = now, lane = lane, condition = SETTLED, probe = 0, progress = 0 }
  entry.amounts, entry.before = used, ''
  insert_entry(keys, state, id, entry)
end
local pause = closed_for(state, now)
if call[12] > 0 then
  local closed = signal == SPENT_OUT and EXHAUSTED or signal == REFUSED_BY and REFUSED or PAUSED
  pause = close_gate(keys, state, now, call[12], call[13], closed, ARGV[4])
end
local ratio, output, cached = expectation(learned or load_learned(KEYS[6]))
local reply = { outcome, math.ceil(pause), ratio, output, cached, math.ceil(room_now(state)) }
if
  quota[OWN_FINGERPRINT] == state[FINGERPRINT]
  and state[VERSION] > 0
  and is_task_free(state, now)
then
  state[HANDED], state[HANDED_DONE] = now, 0
  for _, part in ipairs(policy_reading(keys, state, now)) do
    reply[#reply + 1] = part
  end
end
save_state(keys, quota, state, now)
return reply
