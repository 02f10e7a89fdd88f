-- The ledger: a sorted set of reservation ids by time of admission, and beside it a hash from id to a packed entry
-- (admission, lane, settled, then the amount of each dimension). Totals are kept in the state and never summed anew.
local EXPIRED_AT_ONCE, LOOK, WALK = 256, 8, 48

local function pack_entry(admitted, lane, settled, amounts)
  return struct.pack('<ddddddd', admitted, lane, settled, amounts[1], amounts[2], amounts[3], amounts[4])
end

local function unpack_entry(packed)
  local admitted, lane, settled, requests, input, output, combined = struct.unpack('<ddddddd', packed)
  return admitted, lane, settled, { requests, input, output, combined }
end

local function add_to_totals(state, lane, amounts, sign)
  local lane_at = lane_slot(lane)
  for dimension = 1, DIMENSIONS do
    local slot = dimension_slot(dimension) + TOTAL
    state[slot] = state[slot] + sign * amounts[dimension]
    slot = lane_at + USED + dimension
    state[slot] = state[slot] + sign * amounts[dimension]
  end
end

local function refresh_oldest(ledger_key, state)
  local first = redis.call('ZRANGE', ledger_key, 0, 0, 'WITHSCORES')
  state[OLDEST] = tonumber(first[2]) or 0
end

-- Takes what has left the window out of the totals. Each reservation enters once and leaves once, so this costs
-- O(log n) a call on average; the bound keeps one call short after a silence. One look brings those that leave and the
-- next oldest.
local function expire(ledger_key, entries_key, state, now, window)
  local left = EXPIRED_AT_ONCE
  while left > 0 and state[OLDEST] > 0 and state[OLDEST] <= now - window do
    local first = redis.call('ZRANGE', ledger_key, 0, LOOK - 1, 'WITHSCORES')
    local ids = {}
    state[OLDEST] = 0
    for index = 1, #first, 2 do
      local admitted = tonumber(first[index + 1])
      if admitted > now - window then
        state[OLDEST] = admitted
        break
      end
      ids[#ids + 1] = first[index]
    end
    if #ids == 0 then
      return
    end
    local packed = redis.call('HMGET', entries_key, unpack(ids))
    for index = 1, #ids do
      if packed[index] then
        local _, lane, settled, amounts = unpack_entry(packed[index])
        add_to_totals(state, lane, amounts, -1)
        if settled == 0 then
          local slot = lane_slot(lane) + IN_FLIGHT
          state[slot] = math.max(0, state[slot] - 1)
        end
      end
    end
    redis.call('HDEL', entries_key, unpack(ids))
    redis.call('ZREMRANGEBYRANK', ledger_key, 0, #ids - 1)
    left = left - #ids
    if #ids == LOOK then
      refresh_oldest(ledger_key, state)
    end
  end
end

-- Ledger and entries live for three windows after the last admission or a little less: setting that at every call would
-- cost as much as the rest of the writing.
local function keep_alive(ledger_key, entries_key, state, now, window)
  if now - state[KEPT] > window / 2 or state[OLDEST] == 0 then
    local ttl = math.ceil(3 * window / 1000)
    redis.call('PEXPIRE', ledger_key, ttl)
    redis.call('PEXPIRE', entries_key, ttl)
    state[KEPT] = now
  end
end

-- When enough will have left the window: `total_over` and `lane_over` say by how much each dimension is over, in all
-- and in the caller's lane. Walks the oldest entries; beyond the walk the rest is taken to leave at the limit's rate.
local function room_at(ledger_key, entries_key, lane, total_over, lane_over, limits, now, window)
  local ids = redis.call('ZRANGE', ledger_key, 0, WALK - 1)
  local last = now
  if #ids > 0 then
    local packed = redis.call('HMGET', entries_key, unpack(ids))
    for index = 1, #ids do
      if packed[index] then
        local admitted, entry_lane, _, amounts = unpack_entry(packed[index])
        local enough = true
        for dimension = 1, DIMENSIONS do
          total_over[dimension] = total_over[dimension] - amounts[dimension]
          if entry_lane == lane then
            lane_over[dimension] = lane_over[dimension] - amounts[dimension]
          end
          if total_over[dimension] > 0 or lane_over[dimension] > 0 then
            enough = false
          end
        end
        last = math.max(now, admitted + window)
        if enough then
          return last
        end
      end
    end
  end
  local rest = 0
  for dimension = 1, DIMENSIONS do
    if limits[dimension] > 0 then
      local over = math.max(total_over[dimension], lane_over[dimension])
      rest = math.max(rest, over * window / limits[dimension])
    end
  end
  return math.min(last + rest, now + window)
end
