-- The ledger: a sorted set of reservation ids by time of admission, and beside it a hash from id to
-- a packed entry (admission, lane, condition, then the amount of each dimension). Totals are kept
-- in the state and never summed anew.
local EXPIRED_AT_ONCE = 16384
local RESERVED, SETTLED, OUTLIVED = 0, 1, 2

local function pack_entry(admitted, lane, condition, amounts)
  return struct.pack('<dBBdddd', admitted, lane, condition, unpack(amounts, 1, WINDOWED))
end

local function unpack_entry(packed)
  local admitted, lane, condition, requests, input, output, combined =
    struct.unpack('<dBBdddd', packed)
  return admitted, lane, condition, { requests, input, output, combined }
end

-- Adds an entry's amounts to the totals, or with sign -1 takes them out; `held` likewise to what is
-- not settled.
local function add_to_totals(state, lane, amounts, sign, held)
  local lane_used = lane_slot(lane) + USED
  for dimension = 1, WINDOWED do
    local slot, amount = dimension_slot(dimension), sign * amounts[dimension]
    state[slot + TOTAL] = state[slot + TOTAL] + amount
    state[lane_used + dimension] = state[lane_used + dimension] + amount
    state[slot + HELD] = state[slot + HELD] + held * amounts[dimension]
  end
end

local function add_in_flight(state, lane, by)
  local slot, of_lane = dimension_slot(IN_FLIGHT) + TOTAL, lane_slot(lane) + USED + IN_FLIGHT
  state[slot] = math.max(0, state[slot] + by)
  state[of_lane] = math.max(0, state[of_lane] + by)
end

local function admitted_at(keys, id)
  local packed = id and redis.call('HGET', keys.entries, id)
  return packed and struct.unpack('<d', packed) or 0
end

local function refresh_oldest(keys, state)
  state[OLDEST] = admitted_at(keys, redis.call('ZRANGE', keys.ledger, 0, 0)[1])
end

-- Makes ledger, leases and totals anew from the entries. A server that evicts keys, or a failover
-- that lost some, leaves parts of what belongs together; what is in no entry is forgotten.
local function recount(keys, state, model, now)
  for dimension = 1, IN_FLIGHT do
    state[dimension_slot(dimension) + TOTAL], state[dimension_slot(dimension) + HELD] = 0, 0
    for lane = 1, state[LANES] do
      state[lane_slot(lane) + USED + dimension] = 0
    end
  end
  redis.call('DEL', keys.ledger)
  local all, outlived = redis.call('HGETALL', keys.entries), {}
  for index = 1, #all, 2 do
    local id = all[index]
    local admitted, lane, condition, amounts = unpack_entry(all[index + 1])
    if condition ~= OUTLIVED then
      redis.call('ZADD', keys.ledger, string.format('%.0f', admitted), id)
      add_to_totals(state, lane, amounts, 1, condition == RESERVED and 1 or 0)
    else
      outlived[id] = redis.call('ZSCORE', keys.leases, id)
        or string.format('%.0f', now + model[LEASE])
    end
    if condition ~= SETTLED then
      add_in_flight(state, lane, 1)
    end
  end
  redis.call('DEL', keys.leases)
  for id, ends in pairs(outlived) do
    redis.call('ZADD', keys.leases, ends, id)
  end
  refresh_oldest(keys, state)
  state[KEPT] = 0
end

-- Gives back the places of calls whose lease has ended: their worker is gone, or never said what
-- became of them. A lease without an entry shows that the entries were lost.
local function end_leases(keys, state, model, now)
  local until_now, lost = string.format('%.0f', now), false
  local ids =
    redis.call('ZRANGEBYSCORE', keys.leases, '-inf', until_now, 'LIMIT', 0, EXPIRED_AT_ONCE)
  for index = 1, #ids do
    local packed = redis.call('HGET', keys.entries, ids[index])
    if packed then
      local _, lane = unpack_entry(packed)
      add_in_flight(state, lane, -1)
      redis.call('HDEL', keys.entries, ids[index])
    end
    redis.call('ZREM', keys.leases, ids[index])
    lost = lost or not packed
  end
  if lost then
    recount(keys, state, model, now)
  end
end

-- Whether ledger, entries and leases still belong together. Counting costs as much as the rest of
-- a call, so most calls look only whether ledger and entries are there.
local function is_whole(keys, state, model, now)
  local in_flight = state[dimension_slot(IN_FLIGHT) + TOTAL]
  if now - state[KEPT] < model[WINDOW] / 2 then
    if state[OLDEST] == 0 then
      return in_flight == 0 or redis.call('EXISTS', keys.entries) == 1
    end
    return redis.call('EXISTS', keys.ledger, keys.entries) == 2
  end
  local ids, entries = redis.call('ZCARD', keys.ledger), redis.call('HLEN', keys.entries)
  return entries == ids + redis.call('ZCARD', keys.leases)
    and (ids > 0) == (state[OLDEST] > 0)
    and in_flight <= entries
end

-- Takes what has left the window out of the totals. Each reservation enters once and leaves once,
-- so this costs O(log n) a call on average; the bound keeps one call short after a silence: some
-- 20 ms at most. A call that outlives the window gives its tokens back but stays in flight, until
-- it settles or its lease ends.
local function expire(keys, state, model, now)
  local LOOK = 256
  if not is_whole(keys, state, model, now) then
    recount(keys, state, model, now)
  end
  local left, look, horizon, outlived = EXPIRED_AT_ONCE, 2, now - model[WINDOW], false
  while left > 0 and state[OLDEST] > 0 and state[OLDEST] <= horizon do
    local ids = redis.call('ZRANGE', keys.ledger, 0, look - 1)
    local packed = #ids > 0 and redis.call('HMGET', keys.entries, unpack(ids)) or {}
    local gone, settled = 0, {}
    state[OLDEST] = 0
    for index = 1, #ids do
      if packed[index] then
        local admitted, lane, condition, amounts = unpack_entry(packed[index])
        if admitted > horizon then
          state[OLDEST] = admitted
          break
        end
        if condition == RESERVED then
          add_to_totals(state, lane, amounts, -1, -1)
          local entry = pack_entry(admitted, lane, OUTLIVED, amounts)
          local lease_ends = string.format('%.0f', admitted + model[LEASE])
          redis.call('HSET', keys.entries, ids[index], entry)
          redis.call('ZADD', keys.leases, lease_ends, ids[index])
          outlived = true
        else
          add_to_totals(state, lane, amounts, -1, 0)
          settled[#settled + 1] = ids[index]
        end
      end
      gone = gone + 1
    end
    if #settled > 0 then
      redis.call('HDEL', keys.entries, unpack(settled))
    end
    if gone > 0 then
      redis.call('ZREMRANGEBYRANK', keys.ledger, 0, gone - 1)
    end
    if gone == look then
      refresh_oldest(keys, state)
    end
    left, look = left - gone, LOOK
  end
  if outlived then
    state[KEPT] = 0
    end_leases(keys, state, model, now)
  end
end

-- Enters a call at `now`.
local function enter(keys, state, now, id, lane, condition, amounts)
  redis.call('ZADD', keys.ledger, string.format('%.0f', now), id)
  redis.call('HSET', keys.entries, id, pack_entry(now, lane, condition, amounts))
  add_to_totals(state, lane, amounts, 1, condition == RESERVED and 1 or 0)
  if state[OLDEST] == 0 then
    state[OLDEST], state[KEPT] = now, 0
  end
end
