-- Admitted calls. The window is a sorted set of reservation ids by time of admission. Beside it a
-- hash maps each id to a packed entry: admission, lane, condition, 1 for the probe call after a
-- refusal, progress (by how much it moved its queue on), the four amounts; then, until it is
-- settled, the state of the four dimensions before its admission: drawn (without what policies had
-- added), not settled, in the window, spent. The totals are kept in the state and never summed
-- again.
local RESERVED, SETTLED, OUTLIVED = 0, 1, 2
local ENTRY_FORMAT, BEFORE_FORMAT = '<dBBBddddd', '<dddddddddddddddd'

local function unpack_entry(packed)
  local admitted, lane, condition, probe, progress, requests, input, output, combined, next_byte =
    struct.unpack(ENTRY_FORMAT, packed)
  return {
    admitted = admitted,
    lane = lane,
    condition = condition,
    probe = probe,
    progress = progress,
    amounts = { requests, input, output, combined },
    before = packed:sub(next_byte),
  }
end

local function keep_entry(keys, id, entry)
  local head = struct.pack(
    ENTRY_FORMAT,
    entry.admitted,
    entry.lane,
    entry.condition,
    entry.probe,
    entry.progress,
    unpack(entry.amounts)
  )
  local before = entry.condition == SETTLED and '' or entry.before
  redis.call('HSET', keys.entries, id, head .. before)
end

-- Draws from the levels. A debt is at most what refills in a window, however wrong an estimate was.
-- Nothing is drawn where there is no limit.
local function draw(state, amounts)
  for dimension = 1, DIMENSIONS do
    local slot, amount = dimension_slot(dimension), amounts[dimension]
    local deepest = state[slot + CAPACITY] + state[slot + MOST]
    state[slot + DRAWN] = math.max(0, math.min(state[slot + DRAWN] + amount, deepest))
    state[slot + SPENT] = state[slot + SPENT] + amount
  end
end

-- Adds an entry's amounts to the totals of the window, or takes them out with sign -1.
local function add_to_window(state, entry, sign)
  local lane_used = lane_slot(entry.lane) + USED
  for dimension = 1, DIMENSIONS do
    local slot, amount = dimension_slot(dimension), sign * entry.amounts[dimension]
    state[slot + TOTAL] = state[slot + TOTAL] + amount
    state[lane_used + dimension] = state[lane_used + dimension] + amount
    if entry.condition == RESERVED then
      state[slot + HELD] = state[slot + HELD] + amount
    end
  end
  state[PROGRESS] = state[PROGRESS] + sign * entry.progress
end

local function insert_entry(keys, state, id, entry)
  redis.call('ZADD', keys.ledger, string.format('%.0f', entry.admitted), id)
  keep_entry(keys, id, entry)
  add_to_window(state, entry, 1)
  state.first = nil
  if state[OLDEST] == 0 then
    state[OLDEST], state[KEPT] = entry.admitted, 0
  end
end

local function add_in_flight(state, lane, by)
  local slot = lane_slot(lane) + LANE_FLIGHT
  state[FLIGHT] = math.max(0, state[FLIGHT] + by)
  state[slot] = math.max(0, state[slot] + by)
end

local function refresh_oldest(keys, state)
  local oldest = redis.call('ZRANGE', keys.ledger, 0, 0, 'WITHSCORES')
  state[OLDEST] = tonumber(oldest[2] or 0)
end

local function refresh_leases(keys, state)
  local first = redis.call('ZRANGE', keys.leases, 0, 0, 'WITHSCORES')
  state[LEASE_ENDS] = tonumber(first[2] or 0)
end

-- Whether ledger, entries and leases still belong together. Counting costs as much as the rest of a
-- call, so most calls only check that ledger and entries exist.
local function is_whole(keys, state, quota, now)
  if now - state[KEPT] < quota[WINDOW] * HALF then
    if state[OLDEST] == 0 then
      return state[FLIGHT] == 0 or redis.call('EXISTS', keys.entries) == 1
    end
    return redis.call('EXISTS', keys.ledger, keys.entries) == 2
  end
  local ids, entries = redis.call('ZCARD', keys.ledger), redis.call('HLEN', keys.entries)
  return entries == ids + redis.call('ZCARD', keys.leases)
    and (ids > 0) == (state[OLDEST] > 0)
    and state[FLIGHT] <= entries
end

-- Ends expired leases: the call's worker is gone or never settled it. The call no longer counts as
-- in flight. A lease without an entry shows that entries were lost.
local function end_leases(keys, state, now)
  local lost, until_now = false, string.format('%.0f', now)
  local ids = redis.call('ZRANGEBYSCORE', keys.leases, '-inf', until_now)
  for index = 1, #ids do
    local packed = redis.call('HGET', keys.entries, ids[index])
    if packed then
      add_in_flight(state, unpack_entry(packed).lane, -1)
      redis.call('HDEL', keys.entries, ids[index])
    end
    redis.call('ZREM', keys.leases, ids[index])
    lost = lost or not packed
  end
  refresh_leases(keys, state)
  state.is_broken = state.is_broken or lost
end

-- Removes some entries that have left the window. A call that outlives the window gives its amounts
-- back and stays in flight until it settles or its lease ends.
local function expire_some(keys, state, quota, horizon)
  local until_then = string.format('%.0f', horizon)
  local ids = redis.call('ZRANGEBYSCORE', keys.ledger, '-inf', until_then, 'LIMIT', 0, WALK)
  local packed = #ids > 0 and redis.call('HMGET', keys.entries, unpack(ids)) or {}
  local settled = {}
  for index = 1, #ids do
    local entry = packed[index] and unpack_entry(packed[index])
    if entry then
      add_to_window(state, entry, -1)
    end
    if entry and entry.condition == RESERVED then
      entry.condition = OUTLIVED
      keep_entry(keys, ids[index], entry)
      local ends = horizon + quota[CALL_LEASE]
      redis.call('ZADD', keys.leases, string.format('%.0f', ends), ids[index])
      state[KEPT] = 0
      state[LEASE_ENDS] = state[LEASE_ENDS] > 0 and math.min(state[LEASE_ENDS], ends) or ends
    elseif entry then
      settled[#settled + 1] = ids[index]
    end
  end
  if #settled > 0 then
    redis.call('HDEL', keys.entries, unpack(settled))
  end
  if #ids > 0 then
    redis.call('ZREMRANGEBYRANK', keys.ledger, 0, #ids - 1)
  end
  refresh_oldest(keys, state)
end

-- Removes what has left the window. Each call enters and leaves once, so this costs O(log n) a call
-- on average; the bound keeps one call short after a silence. If something is broken, `inspect`
-- repairs it.
local function expire(keys, state, quota, now)
  state.is_broken = not is_whole(keys, state, quota, now)
  if state.is_broken then
    return
  end
  local horizon = now - quota[WINDOW]
  for _ = 1, WALK do
    if state[OLDEST] == 0 or state[OLDEST] > horizon then
      break
    end
    expire_some(keys, state, quota, horizon)
  end
  if state[LEASE_ENDS] > 0 and state[LEASE_ENDS] <= now then
    end_leases(keys, state, now)
  end
end
