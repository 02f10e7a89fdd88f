-- One model's state: a packed string of little-endian doubles (2.7 times cheaper to read and write than hash fields).
-- Every time is in microseconds of the server's clock. Slots, counted from 1:
--   header     1 layout, 2 epoch, 3 latest time seen, 4 admission of the oldest reservation (0: none), 5 lanes,
--              6 when the ledger's time to live was last set
--   dimension  total in the window, pace clock                   (requests, input, output, combined)
--   lane       tail and shift of its queue, until when its head is blocked, last refusal, last request, calls in flight,
--              its yield (what calls use of what they reserve; 0: unknown), total of each dimension
local LAYOUT, EPOCH, LATEST, OLDEST, LANES, KEPT = 1, 2, 3, 4, 5, 6
local TOTAL, PACE = 1, 2
local TAIL, SHIFT, HEAD, REFUSED_AT, SEEN_AT, IN_FLIGHT, YIELD, USED = 1, 2, 3, 4, 5, 6, 7, 7
local DIMENSIONS, HEADER, PER_DIMENSION, PER_LANE = 4, 6, 2, 11
local LAYOUT_VERSION = 1

local function dimension_slot(dimension)
  return HEADER + (dimension - 1) * PER_DIMENSION
end

local function lane_slot(lane)
  return HEADER + DIMENSIONS * PER_DIMENSION + (lane - 1) * PER_LANE
end

-- The server's time, or the test's; a clock that steps back stands still instead, see load_state.
local function clock(override)
  if override > 0 then
    return override
  end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- State and the time to reckon with. A missing or foreign state starts empty: the window is forgotten, the pace is not
-- (every pace clock starts at now), so that a restarted server lets no burst through. More lanes than before are added;
-- fewer leave the others as they are, so that two configurations can live side by side during a deployment.
local function load_state(state_key, ledger_key, entries_key, lanes, now)
  local state
  local packed = redis.call('GET', state_key)
  if packed then
    state = { struct.unpack('<' .. string.rep('d', #packed / 8), packed) }
    state[#state] = nil
    if state[LAYOUT] ~= LAYOUT_VERSION then
      state = nil
    end
  end
  if not state then
    redis.call('DEL', ledger_key, entries_key)
    state = { LAYOUT_VERSION, now, now, 0, 0, 0 }
    for dimension = 1, DIMENSIONS do
      local slot = dimension_slot(dimension)
      state[slot + TOTAL] = 0
      state[slot + PACE] = now
    end
  end
  for lane = state[LANES] + 1, lanes do
    local slot = lane_slot(lane)
    for field = 1, PER_LANE do
      state[slot + field] = 0
    end
    state[LANES] = lane
  end
  if now < state[LATEST] then
    now = state[LATEST]
  end
  state[LATEST] = now
  return state, now
end

-- One number moves a lane's whole queue, and with it the time until which its head is blocked.
local function shift_queue(state, lane, by)
  local slot = lane_slot(lane)
  state[slot + SHIFT] = state[slot + SHIFT] + by
  state[slot + HEAD] = state[slot + HEAD] + by
end

-- What a lane's calls use of what they reserve, 1 while nothing is known. Turns are spaced by what calls will use, not by
-- what is held for them: those who wait would be told twice the truth where a provider holds max_tokens.
local function lane_yield(state, lane)
  local known = state[lane_slot(lane) + YIELD]
  return known > 0 and known or 1
end

-- Kept for ten windows: longer than any reservation in the ledger, so that totals and ledger never part.
local function save_state(state_key, state, window)
  redis.call('SET', state_key, struct.pack('<' .. string.rep('d', #state), unpack(state)), 'PX', math.ceil(window / 100))
end
