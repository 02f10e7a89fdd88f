-- A lane's queue: turns, and when the head may go. Turns are spaced by the rate: closer ones cost a
-- question each, and whoever finds room before a turn takes it.

-- Moves the end of a tenant's queue behind one more call; `front` is the turn that is due now. The
-- turns of all tenants lie in the same virtual time, so those with more waiting than others get no
-- more of the lane (start-time fair queueing).
local function move_tail(state, lane_at, tenants_key, tenant, tail, front, life)
  redis.call('ZREMRANGEBYSCORE', tenants_key, '-inf', string.format('%.0f', front))
  redis.call('ZADD', tenants_key, string.format('%.0f', tail), tenant)
  redis.call('PEXPIRE', tenants_key, math.ceil(life / 1000))
  state[lane_at + TAIL] = math.max(state[lane_at + TAIL], tail)
end

-- When enough will have left the window for a call that is too large by `over`. Walks the oldest
-- entries; beyond the walk the rest is taken to leave at the limit's rate.
local function room_at(asked, over)
  local WALK = 48
  local keys, state = asked.quota.keys, asked.quota.state
  local now, window = asked.quota.now, asked.quota.model[WINDOW]
  local total, own, gives = { unpack(over.total) }, { unpack(over.lane) }, {}
  -- What leaves the window of a lane that is not backlogged is this lane's to borrow.
  for lane = 1, asked.lanes do
    local backlogged = now - state[lane_slot(lane) + BACKLOGGED_AT] < BACKLOGGED
    gives[lane] = lane == asked.lane or not backlogged
  end
  local ids = redis.call('ZRANGE', keys.ledger, 0, WALK - 1)
  local packed = #ids > 0 and redis.call('HMGET', keys.entries, unpack(ids)) or {}
  local last = now
  for index = 1, #ids do
    if packed[index] then
      local admitted, entry_lane, _, amounts = unpack_entry(packed[index])
      local enough = true
      for dimension = 1, WINDOWED do
        total[dimension] = total[dimension] - amounts[dimension]
        if gives[entry_lane] then
          own[dimension] = own[dimension] - amounts[dimension]
        end
        if total[dimension] > 0 or own[dimension] > 0 then
          enough = false
        end
      end
      last = math.max(now, admitted + window)
      if enough then
        return last
      end
    end
  end
  local rest = 0
  for dimension = 1, WINDOWED do
    local limit = asked.limits[dimension]
    if limit > 0 then
      rest = math.max(rest, math.max(total[dimension], own[dimension]) * window / limit)
    end
  end
  return math.min(last + rest, now + window)
end
