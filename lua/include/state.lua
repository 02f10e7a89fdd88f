-- One quota's state: a packed string of little-endian doubles (2.7 times cheaper to read and write
-- than hash fields), counted from 1: a header, then the slots of each dimension, then those of each
-- lane. Times are microseconds of the server's clock; a time of 0 is none.

-- Header: version of the layout; start of this life of the state, which tickets name; latest time
-- seen; admission of the oldest call in the window; number of lanes; when times to live were last
-- set.
local LAYOUT, EPOCH, LATEST, OLDEST, LANES, KEPT = 1, 2, 3, 4, 5, 6
-- When the gate opens; why it is closed (0 open, 1 pause, 2 exhausted, 3 refused); admission of the
-- probe; mean time from admission to settlement.
local GATE, CLOSED, PROBE, LATENCY = 7, 8, 9, 10
-- The plan's version; its fingerprint; start of the program that made it; since when plans have
-- this fingerprint; horizon; calls at once.
local VERSION, FINGERPRINT, BORN, REPLACED, HORIZON, CONCURRENT = 11, 12, 13, 14, 15, 16
-- Calls in flight; their cap after overloads, how many they were then, and when; by how much the
-- calls in the window moved their queues on.
local FLIGHT, CAP, CAP_PEAK, CAPPED_AT, PROGRESS = 17, 18, 19, 20, 21
-- Observations ever logged; answers ever; when the policy's task was last handed out; 1 if it is
-- done; 1 if a refusal is unread; when the first lease ends.
local LOGGED, ANSWERS, HANDED, HANDED_DONE, URGENT, LEASE_ENDS = 22, 23, 24, 25, 26, 27

-- Dimension: the plan's rate, capacity, window and most (0: no limit); what is drawn ahead of the
-- rate.
local RATE, CAPACITY, PLAN_WINDOW, MOST, DRAWN = 1, 2, 3, 4, 5
-- Most drawn since the policy last ran; ever spent; ever added by policies; in the window; the
-- unsettled part of that.
local PEAK, SPENT, CHANGED, TOTAL, HELD = 6, 7, 8, 9, 10

-- Lane: what it has saved; work that waits; work that passed since; the caller whose turn passed
-- while it was away: its turn, its work, until when it may come.
local LANE_STANDBY, WAITING, PASSED, LATE_TURN, LATE_WORK, LATE_UNTIL = 1, 2, 3, 4, 5, 6
-- The most work that the first caller in turn needs, and until when it may come; calls in flight;
-- then the use in the window of each dimension.
local NEED, NEED_UNTIL, LANE_FLIGHT, USED = 7, 8, 9, 9

local REQUESTS, INPUT, OUTPUT, COMBINED, DIMENSIONS = 1, 2, 3, 4, 4
local HEADER, PER_DIMENSION, PER_LANE = 27, 10, 13
local LAYOUT_VERSION = 3

local function dimension_slot(dimension)
  return HEADER + (dimension - 1) * PER_DIMENSION
end

local function lane_slot(lane)
  return HEADER + DIMENSIONS * PER_DIMENSION + (lane - 1) * PER_LANE
end

local function new_state(keys, now)
  redis.call('DEL', keys.ledger, keys.entries, keys.leases)
  local state = {}
  for slot = 1, lane_slot(1) do
    state[slot] = 0
  end
  state[LAYOUT], state[EPOCH], state[LATEST] = LAYOUT_VERSION, now, now
  return state
end

-- Moves every time back, so that ages and remaining times stay the same. After a failover to a
-- server whose clock is behind, time goes on from that clock.
local function rebase(keys, state, by)
  for _, slot in ipairs({ LATEST, OLDEST, GATE, PROBE, REPLACED, CAPPED_AT, LEASE_ENDS }) do
    state[slot] = state[slot] > 0 and state[slot] - by or 0
  end
  for lane = 1, state[LANES] do
    local late, need = lane_slot(lane) + LATE_UNTIL, lane_slot(lane) + NEED_UNTIL
    state[need] = state[need] - by
    state[late] = math.max(0, state[late] - by)
  end
  state[HANDED], state[KEPT] = 0, 0
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
end

-- The state and the present time (time stands still if the clock steps back), or nil and an error
-- reply: a program older than the state must not change it. A missing or foreign state starts
-- without a plan. New lanes are added; missing lanes leave the others as they are, so that two
-- configurations can run side by side during a deployment.
local function load_state(keys, quota, now)
  local packed, state = redis.call('GET', keys.state), nil
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
  elseif state[LATEST] - now > quota[WINDOW] then
    rebase(keys, state, state[LATEST] - now)
  end
  for lane = state[LANES] + 1, (#quota - LANE_SHARES) / 2 do
    for slot = lane_slot(lane) + 1, lane_slot(lane + 1) do
      state[slot] = 0
    end
    state[LANES] = lane
  end
  return state, math.max(now, state[LATEST])
end

-- Writes the state. Ledger, entries and leases outlive it, so that totals never count what is
-- forgotten. Setting times to live at every call would cost as much as the rest of the writing:
-- they are set every half window. The state lives an hour, because tickets may be kept that long,
-- and longer than the gate is closed.
local function save_state(keys, quota, state, now)
  local keep = now - state[KEPT] >= quota[WINDOW] * HALF
  if keep then
    state[KEPT] = now
  end
  if state.is_broken then
    -- Makes the next call check again.
    state[KEPT] = 0
  end
  state[LATEST] = now
  local packed = struct.pack('<' .. string.rep('d', #state), unpack(state))
  if not keep then
    redis.call('SETRANGE', keys.state, 0, packed)
    return
  end
  local life = math.max(HOUR, state[GATE] - now + quota[WINDOW])
  local longer = math.ceil((life + quota[WINDOW] + quota[CALL_LEASE]) / MILLISECOND)
  redis.call('SET', keys.state, packed, 'PX', math.ceil(life / MILLISECOND))
  redis.call('PEXPIRE', keys.ledger, longer)
  redis.call('PEXPIRE', keys.entries, longer)
  redis.call('PEXPIRE', keys.leases, longer)
end
