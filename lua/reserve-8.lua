--[[
Reserves what one provider call will use, or says when to come back. All or nothing over every
dimension.

Guarantees
  * In any window the admitted amounts stay within each limit, and no faster than the pace clock
    allows.
  * The same id is admitted once: asking again after a lost reply answers as the first time and
    costs nothing.
  * A refusal changes no amount. It returns a ticket: coming back with it keeps the caller's turn in
    its lane.
  * First come, first served among a tenant's calls in a lane, and equal parts of the lane's tokens
    for its tenants; a newcomer never overtakes a call of its tenant whose turn has not come yet,
    except into capacity that no call has used for 300 ms.

Keys, all with the hash tag {provider:model}
  KEYS[1] ledger   sorted set, reservation id by time of admission
  KEYS[2] entries  hash, reservation id to its packed entry
  KEYS[3] state    packed doubles, see include/state.lua
  KEYS[4] leases   sorted set, id of a call that outlived the window by the end of its lease
  KEYS[5] tuning   packed doubles, see include/tuning.lua
  KEYS[6] learned  packed doubles, see include/learned.lua
  KEYS[7] tenants  sorted set of this lane, tenant by the end of its queue
  KEYS[8] burst    packed doubles, see include/burst.lua

Arguments (numbers packed as little-endian doubles, times in microseconds)
  ARGV[1]  reservation id, unique to one attempt
  ARGV[2]  the call, 9 numbers:
             1      lane, counted from 1
             2, 3   ticket: epoch and position, 0 without a ticket
             4..7   amounts to reserve: requests, input, output, combined tokens
             8      1 to be told what is expected of such calls, 0 if it is known
             9      clock for tests, 0 for the server's
  ARGV[3]  the model, see include/arguments.lua
  ARGV[4]  tenant

Reply: integers
  1 outcome      1 granted, 2 wait, 3 paused, 4 never fits, 5 exhausted
  2 wait         microseconds until it is worth asking again (rounded up); for 5 until the end
  3 dimension    the one that binds: 1 requests, 2 input, 3 output, 4 combined, 5 calls at once;
                 6 the lane's turn; 7 the call that goes first after a pause; 8 requests and
                 9 tokens of the day; 0 none, or the provider said so
  4 deficit      by how much that dimension is over; for 4 its capacity
  5 epoch        of the ticket
  6 position     of the ticket
  7 ratio        real over estimated input in millionths, 0 unknown or not asked for
  8 output       expected output tokens, 0 unknown or not asked for
]]
--- @include "include/arguments"
--- @include "include/state"
--- @include "include/ledger"
--- @include "include/tuning"
--- @include "include/gate"
--- @include "include/lanes"
--- @include "include/shift"
--- @include "include/burst"
--- @include "include/queue"
--- @include "include/learned"
local GRANTED, WAIT, CLOSED, NEVER, OUT = 1, 2, 3, 4, 5
local BY_TURN, BY_CANARY, BY_DAY_REQUESTS, BY_DAY_TOKENS = 6, 7, 8, 9
local IDLE = 300000

if #ARGV ~= 4 then
  return redis.error_reply('TIDEGATE wants 4 arguments, not ' .. #ARGV)
end
local id = ARGV[1]
if id == '' then
  return bad_argument(1, 'a reservation id')
end
local call, refused = numbers(2, 9)
if refused then
  return refused
end
local model, unusable = read_model(3)
if unusable then
  return unusable
end
local lanes, lane, epoch, position = (#model - LANE_SHARES) / 2, call[1], call[2], call[3]
if lane < 1 or lane > lanes or lane ~= math.floor(lane) then
  return bad_argument(2, 'a call in a lane from 1 to ' .. lanes)
end
local keys = {
  ledger = KEYS[1],
  entries = KEYS[2],
  state = KEYS[3],
  leases = KEYS[4],
  tuning = KEYS[5],
  burst = KEYS[8],
}
local amounts, window = { call[4], call[5], call[6], call[7], 1 }, model[WINDOW]

-- Read.
local state, now = load_state(keys, model, clock(call[9]))
if not state then
  return now
end
local tuning = load_tuning(keys, state, model, now)
local burst = load_burst(keys, state, model, now)
expire_with_credit(keys, state, model, burst, now)
local ratio, expected_output = 0, 0
if call[8] > 0 then
  ratio, expected_output = expectation(load_learned(KEYS[6]))
end
local lane_at = lane_slot(lane)
if state[lane_at + SEEN_AT] == 0 then
  redis.call('DEL', KEYS[7])
end
state[lane_at + SEEN_AT] = now

local function reply(outcome, wait, dimension, deficit, ticket)
  save_tuning(keys, tuning)
  save_burst(keys, burst, model, now)
  save_state(keys, state, model, now)
  return {
    outcome,
    math.ceil(wait),
    dimension,
    math.ceil(deficit),
    ticket and state[EPOCH] or 0,
    ticket and math.floor(ticket) or 0,
    ratio,
    expected_output,
  }
end

if redis.call('HEXISTS', keys.entries, id) == 1 then
  return reply(GRANTED, 0, 0, 0)
end
local limits, whole = limits_now(model, tuning)
for dimension = 1, IN_FLIGHT do
  local limit, amount = limits[dimension], amounts[dimension]
  if limit > 0 then
    local ceiling = model[LANE_SHARES + 2 * lane] * whole[dimension]
    if amount > ceiling and dimension <= WINDOWED then
      return reply(NEVER, 0, dimension, ceiling)
    end
    -- What a refusal has taken off comes back, so a call as large as the whole limit waits and is
    -- not turned away.
    limits[dimension] = math.max(limit, amount)
  end
end
local has_ticket = epoch == state[EPOCH] and position > 0
if position > 0 and not has_ticket then
  begin_steady(burst, model, now)
end
local pause = closed_for(state, now)
if pause > 0 then
  local outcome = state[CLOSED_FOR] == EXHAUSTED and OUT or CLOSED
  return reply(outcome, pause, 0, 0, has_ticket and position or nil)
end
if tuning then
  local day_left = FULL_DAY - (now + model[DAY_OFFSET]) % FULL_DAY
  local requests_over = tuning[DAY_REQUESTS] + amounts[REQUESTS] - model[DAY_REQUEST_LIMIT]
  if model[DAY_REQUEST_LIMIT] > 0 and requests_over > 0 then
    return reply(OUT, day_left, BY_DAY_REQUESTS, requests_over)
  end
  local tokens_over = tuning[DAY_TOKENS] + amounts[COMBINED] - model[DAY_TOKEN_LIMIT]
  if model[DAY_TOKEN_LIMIT] > 0 and tokens_over > 0 then
    return reply(OUT, day_left, BY_DAY_TOKENS, tokens_over)
  end
end

local speed, tolerance = PACE_SPEEDUP, model[TOLERANCE]
local credit, roomy = credits(burst, state, model, limits, now), {}
if burst then
  grow(burst, state, model, limits, credit, now)
  speed, tolerance = pace_speed(burst, model), burst.allowance
end
for dimension = 1, IN_FLIGHT do
  local most = math.max(limits[dimension] + credit[dimension], amounts[dimension])
  roomy[dimension] = limits[dimension] > 0 and most or 0
end
local capacity, usual = lane_capacity(state, model, lane, lanes, roomy, amounts, now)

-- Decide. A turn is a position in the lane's virtual time; `shift` moves every turn of the lane at
-- once. Each tenant has a queue of its own in that time, so that one tenant's thousand documents do
-- not stand before another's first.
local shift = state[lane_at + SHIFT]
local queued = state[lane_at + TAIL] > now - shift
if not has_ticket then
  -- Turns that were not taken for a minute belong to callers that are gone.
  local GONE = 60000000
  position = now - shift
  if queued then
    position = math.max(position, redis.call('ZSCORE', KEYS[7], ARGV[4]) or 0)
  elseif state[lane_at + TAIL] < position - GONE then
    state[lane_at + WAITING] = 0
  end
end
local due = position + shift
local borrows = borrows_in_company(state, model, lane, lanes, limits, now)
local wait, binding, deficit, turn = 0, 0, 0, 0
local idle = state[lane_at + HEAD] < now - IDLE
-- A caller that is nearly due and finds room need not wait for a turn that was reckoned too late.
local near = has_ticket and state[lane_at + HEAD] <= now and due - now < 5000000
local total_over, lane_over, crowded, fading = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, false, 0
for dimension = 1, WINDOWED do
  local limit, amount = limits[dimension], amounts[dimension]
  if limit > 0 and amount > 0 then
    local slot = dimension_slot(dimension)
    -- A call may start while the pace is within its tolerance; a borrower's must also end there if
    -- it can. Output comes over the length of the call, and not at once.
    local own = amount * window / (limit * speed)
    local SPREAD = 0.25
    local leave = tolerance + (dimension == OUTPUT and state[LATENCY] * SPREAD or 0)
    local ahead = state[slot + PACE] - now - (borrows and math.max(0, leave - own) or leave)
    if ahead > wait then
      wait, binding, deficit = ahead, dimension, ahead * limit / window
    end
    idle = idle and state[slot + PACE] < now + spent_burst(burst, model) - IDLE
    local external = external_use(tuning, dimension, limit, window, now)
    local over = state[slot + TOTAL] + external + amount - roomy[dimension]
    if over > 0 then
      total_over[dimension], crowded = over, true
      fading = over <= external and math.max(fading, over * window / limit) or math.huge
    end
    over = state[lane_at + USED + dimension] + amount - capacity[dimension]
    if over > 0 then
      lane_over[dimension], crowded, fading = over, true, math.huge
    end
  end
end
local slowest = fullest(state, limits)
if slowest > 0 then
  local usually = usual[slowest] * limits[slowest] / roomy[slowest]
  turn = amounts[slowest] * window / usually * yield_of(state, slowest)
end
if limits[IN_FLIGHT] > 0 then
  if over_in_flight(state, lane_at, limits, capacity) > 0 then
    end_leases(keys, state, now)
  end
  local UNKNOWN_LATENCY = 1000000
  local each = (state[LATENCY] > 0 and state[LATENCY] or UNKNOWN_LATENCY) / limits[IN_FLIGHT]
  local over = over_in_flight(state, lane_at, limits, capacity)
  if over > 0 and over * each > wait then
    wait, binding, deficit = over * each, IN_FLIGHT, over
  end
  turn = math.max(turn, each)
end
if state[CANARY] > WANTED then
  -- A refused canary is refused in a fraction of a second; a slow answer is a good sign.
  local CANARY_PATIENCE = 1000000
  local patience = state[CANARY] + CANARY_PATIENCE - now
  if patience <= 0 then
    state[CANARY] = 0
  elseif patience > wait then
    wait, binding, deficit = patience, BY_CANARY, 0
  end
end

if wait <= 0 and not crowded and (due <= now or idle or near) then
  -- Write: admitted. An idle pace and no blocked head mean that those with earlier turns are late
  -- or gone: the queue moves up.
  if has_ticket then
    state[lane_at + WAITING] = math.max(0, state[lane_at + WAITING] - 1)
    if state[lane_at + WAITING] == 0 then
      state[lane_at + BACKLOGGED_AT] = 0
    end
  end
  if due > now then
    state[lane_at + SHIFT] = now - position
  elseif queued and not has_ticket then
    local tail, life = position + turn * SPACING, lifetime(state, model, now)
    move_tail(state, lane_at, KEYS[7], ARGV[4], tail, now - shift, life)
  end
  enter(keys, state, now, id, lane, RESERVED, amounts)
  add_to_day(tuning, model, now, amounts[REQUESTS], amounts[COMBINED])
  add_in_flight(state, lane, 1)
  for dimension = 1, WINDOWED do
    if limits[dimension] > 0 then
      local slot = dimension_slot(dimension) + PACE
      local cost = amounts[dimension] * window / (limits[dimension] * speed)
      state[slot] = math.max(state[slot], now) + cost
    end
  end
  if state[CANARY] == WANTED then
    state[CANARY] = now
  end
  return reply(GRANTED, 0, 0, 0)
end

-- Write: a turn. A caller that is due and blocked holds the lane: none behind it goes first, so
-- large documents do not starve.
if due > now then
  -- While several tenants wait, virtual time runs slower than the clock: they ask once more. Told
  -- the longer wait, a tenant with few calls would come late and lose its part.
  wait, binding, deficit = due - now, BY_TURN, 0
  if burst and not crowded then
    local head = state[lane_at + HEAD]
    wait = wait_in_burst(burst, state, model, limits, credit, head, wait, now)
  end
else
  if crowded then
    state[lane_at + BACKLOGGED_AT] = now
    local over_total, over_lane = { unpack(total_over) }, { unpack(lane_over) }
    for dimension = 1, burst and WINDOWED or 0 do
      local pace = dimension_slot(dimension) + PACE
      if over_total[dimension] > 0 then
        state[pace] = math.max(state[pace], now + spent_burst(burst, model))
      end
    end
    -- What leaves the window of a lane that is not backlogged is this lane's to borrow.
    local gives = {}
    for other = 1, lanes do
      gives[other] = other == lane or now - state[lane_slot(other) + BACKLOGGED_AT] >= BACKLOGGED
    end
    local room = room_at(keys, gives, total_over, lane_over, limits, now, window)
    -- Use by others fades steadily and may be all that is in the way.
    room = math.min(room, now + fading)
    if refills(burst, model) then
      local refill = 0
      for dimension = 1, WINDOWED do
        local over = math.max(over_total[dimension], over_lane[dimension])
        refill = math.max(refill, over > 0 and over * window / limits[dimension] or 0)
      end
      room = math.min(room, now + refill)
    end
    if room - now > wait then
      wait = room - now
      for dimension = 1, WINDOWED do
        local over = math.max(over_total[dimension], over_lane[dimension])
        if over > 0 then
          binding, deficit = dimension, over
        end
      end
    end
  end
  local MIN_WAIT = 1000
  wait = math.max(wait, MIN_WAIT)
  shift = math.max(shift, now + wait - position)
  state[lane_at + SHIFT] = shift
  state[lane_at + HEAD] = now + wait
end
if not has_ticket then
  local tail, life = position + turn * SPACING, lifetime(state, model, now)
  move_tail(state, lane_at, KEYS[7], ARGV[4], tail, now - shift, life)
  state[lane_at + WAITING] = state[lane_at + WAITING] + 1
end
return reply(WAIT, wait, binding, deficit, position)
