-- One model's state: a packed string of little-endian doubles (2.7 times cheaper to read and write
-- than hash fields). Every time is in microseconds of the server's clock. Slots, counted from 1:
--   header     1 layout, 2 epoch, 3 latest time seen, 4 admission of the oldest reservation (0:
--              none), 5 lanes, 6 when times to live were last set, 7 whether the tuning key counts,
--              8 until when the gate is closed, 9 why (1 pause, 2 exhausted), 10 canary (0 none,
--              1 wanted, else when it was admitted), 11 mean time from admission to settlement
--   dimension  total in the window, pace clock, of the total: not settled yet, its yield (what
--              calls use of what they reserve; 0: unknown); requests, input, output, combined, then
--              calls at once, whose total is what is in flight
--   starving   after the lanes, see starving.lua: four numbers, which older programs keep as
--              they are; then six of counted.lua; one of adapt.lua: how many calls were refused of
--              those that were admitted since the limits were lowered last; two of judged.lua
--   lane       tail and shift of its queue, until when its head is blocked, when it last found no
--              room, last request, callers waiting, total of each of the five dimensions
local LAYOUT, EPOCH, LATEST, OLDEST, LANES, KEPT, TUNED = 1, 2, 3, 4, 5, 6, 7
local GATE, CLOSED_FOR, CANARY, LATENCY = 8, 9, 10, 11
local TOTAL, PACE, HELD, YIELD = 1, 2, 3, 4
local TAIL, SHIFT, HEAD, BACKLOGGED_AT, SEEN_AT, WAITING, USED = 1, 2, 3, 4, 5, 6, 6
-- The dimensions; WINDOWED is the last of those that are counted by the window.
local REQUESTS, INPUT, OUTPUT, COMBINED, WINDOWED, IN_FLIGHT = 1, 2, 3, 4, 4, 5
local HEADER, PER_DIMENSION, PER_LANE, STARVING, COUNTED = 11, 4, 11, 4, 6
-- The pace clock runs a little faster than the limit, so that what a blocked head left unused is
-- caught up with; the window still holds the limit.
local LAYOUT_VERSION, PACE_SPEEDUP = 2, 1.04
-- What stands for "wanted" in the slot of the canary; times are larger.
local WANTED = 1

local function dimension_slot(dimension)
  return HEADER + (dimension - 1) * PER_DIMENSION
end

local function lane_slot(lane)
  return HEADER + IN_FLIGHT * PER_DIMENSION + (lane - 1) * PER_LANE
end

-- Behind all lanes.
local function starving_slot(state)
  return lane_slot(state[LANES] + 1)
end

local function refusals_slot(state)
  return starving_slot(state) + STARVING + COUNTED + 1
end

local function new_state(keys, now)
  redis.call('DEL', keys.ledger, keys.entries, keys.leases)
  local state = { LAYOUT_VERSION, now, now, 0, 0, 0, redis.call('EXISTS', keys.tuning), 0, 0, 0, 0 }
  for dimension = 1, IN_FLIGHT do
    local slot = dimension_slot(dimension)
    state[slot + TOTAL], state[slot + PACE], state[slot + HELD], state[slot + YIELD] = 0, now, 0, 0
  end
  return state
end

-- Moves every time back. After a failover to a server whose clock is behind, time goes on from that
-- clock, and whatever was so long ago or so far ahead still is.
local function rebase(keys, state, by)
  for _, slot in ipairs({ LATEST, OLDEST, GATE, CANARY }) do
    state[slot] = state[slot] > WANTED and state[slot] - by or state[slot]
  end
  for dimension = 1, IN_FLIGHT do
    local pace = dimension_slot(dimension) + PACE
    state[pace] = state[pace] - by
  end
  for lane = 1, state[LANES] do
    local slot = lane_slot(lane)
    for _, field in ipairs({ HEAD, BACKLOGGED_AT, SEEN_AT }) do
      state[slot + field] = state[slot + field] > 0 and state[slot + field] - by or 0
    end
    -- Tickets keep their positions: what is added to them moves.
    state[slot + SHIFT] = state[slot + SHIFT] - by
  end
  -- Nobody has been starving yet: when it was is not worth a rule.
  for slot = starving_slot(state) + 1, #state do
    state[slot] = 0
  end
  local entries = redis.call('HGETALL', keys.entries)
  for index = 1, #entries, 2 do
    local admitted, rest = struct.unpack('<d', entries[index + 1]), entries[index + 1]:sub(9)
    redis.call('HSET', keys.entries, entries[index], struct.pack('<d', admitted - by) .. rest)
  end
  for _, key in ipairs({ keys.ledger, keys.leases }) do
    local scores = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for index = 1, #scores, 2 do
      redis.call('ZINCRBY', key, string.format('%.0f', -by), scores[index])
    end
  end
  state[KEPT] = 0
end

-- State and the time to reckon with (a clock that steps back stands still instead), or nil and an
-- error reply: a program that is older than the
-- state must not touch it. A missing or foreign state starts empty: the window is forgotten, the
-- pace is not (every pace clock starts at now), so that a restarted server lets no burst through.
-- More lanes than before are added; fewer leave the others as they are, so that two configurations
-- can live side by side during a deployment.
local function load_state(keys, model, now)
  local packed = redis.call('GET', keys.state)
  local state
  if packed and #packed >= 8 and #packed % 8 == 0 then
    local count = #packed / 8
    state = { struct.unpack('<' .. string.rep('d', count), packed) }
    state[count + 1] = nil
    if state[LAYOUT] > LAYOUT_VERSION and state[LAYOUT] < 1000 then
      local known = string.format('%d, and this program knows %d', state[LAYOUT], LAYOUT_VERSION)
      return nil, redis.error_reply('TIDEGATE-OUTDATED the quota is kept in layout ' .. known)
    end
  end
  if not state or state[LAYOUT] ~= LAYOUT_VERSION then
    state = new_state(keys, now)
  elseif state[LATEST] - now > model[WINDOW] then
    rebase(keys, state, state[LATEST] - now)
  end
  local lanes = (#model - LANE_SHARES) / 2
  for lane = state[LANES] + 1, lanes do
    local slot = lane_slot(lane)
    for field = 1, PER_LANE do
      state[slot + field] = 0
    end
    state[LANES] = lane
    for behind = starving_slot(state) + 1, #state do
      state[behind] = 0
    end
  end
  for slot = #state + 1, refusals_slot(state) + 2 do
    state[slot] = 0
  end
  if now < state[LATEST] then
    now = state[LATEST]
  end
  state[LATEST] = now
  return state, now
end

-- How long the state lives after its last use: ten minutes at least, because tickets may be kept
-- away for so long, and longer than the gate is closed.
local function lifetime(state, model, now)
  return math.max(10 * model[WINDOW], 600000000, state[GATE] - now + model[WINDOW])
end

-- Ledger, entries and leases outlive the state, so that totals are never kept of what is forgotten.
-- Setting times to live at every call would cost as much as the rest of the writing: they are set
-- every half window.
local function save_state(keys, state, model, now)
  local keep = now - state[KEPT] >= model[WINDOW] / 2
  if keep then
    state[KEPT] = now
  end
  local packed = struct.pack('<' .. string.rep('d', #state), unpack(state))
  if not keep then
    redis.call('SETRANGE', keys.state, 0, packed)
    return
  end
  local life = lifetime(state, model, now)
  local longer = math.ceil((life + model[WINDOW] + model[LEASE]) / 1000)
  redis.call('SET', keys.state, packed, 'PX', math.ceil(life / 1000))
  redis.call('PEXPIRE', keys.ledger, longer)
  redis.call('PEXPIRE', keys.entries, longer)
  redis.call('PEXPIRE', keys.leases, longer)
end

-- What calls use of what they reserve; while nothing is known all of it, but half of the output,
-- whose bound is seldom reached. Turns are spaced by what calls will use, not by what is held for
-- them: where a provider holds max_tokens, callers would be told waits twice as long as they are.
local function yield_of(state, dimension)
  local known = state[dimension_slot(dimension) + YIELD]
  local UNKNOWN_YIELD = 0.5
  return known > 0 and known or dimension == OUTPUT and UNKNOWN_YIELD or 1
end

-- The dimension that is fullest, and so sets the rate at which turns come: a turn as long as each
-- call's largest dimension would add up to more than there is when now one binds and now another.
local function fullest(state, limits)
  local found, most = 0, -1
  for dimension = 1, WINDOWED do
    if limits[dimension] > 0 then
      local part = state[dimension_slot(dimension) + TOTAL] / limits[dimension]
      if part > most then
        found, most = dimension, part
      end
    end
  end
  return found
end
