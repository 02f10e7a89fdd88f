-- A lane's queue: turns, and when the head may go. Turns are spaced a little closer than the rate:
-- a caller that is told too short a wait asks once more, while too long a wait would leave capacity
-- unused.
local SPACING = 0.92

-- Moves the end of a tenant's queue behind one more call; `front` is the turn that is due now. The
-- turns of all tenants lie in the same virtual time, so those with more waiting than others get no
-- more of the lane (start-time fair queueing).
local function move_tail(state, lane_at, tenants_key, tenant, tail, front, life)
  redis.call('ZREMRANGEBYSCORE', tenants_key, '-inf', string.format('%.0f', front))
  redis.call('ZADD', tenants_key, string.format('%.0f', tail), tenant)
  redis.call('PEXPIRE', tenants_key, math.ceil(life / 1000))
  state[lane_at + TAIL] = math.max(state[lane_at + TAIL], tail)
end

-- When enough will have left the window: `total_over` and `lane_over` say by how much each
-- dimension is over, in all and in the caller's lane; `gives` which lanes' entries leave room to
-- it. Walks the oldest entries; beyond the walk the rest is taken to leave at the limit's rate.
local function room_at(keys, gives, total_over, lane_over, limits, now, window)
  local WALK = 48
  local ids = redis.call('ZRANGE', keys.ledger, 0, WALK - 1)
  local last = now
  if #ids > 0 then
    local packed = redis.call('HMGET', keys.entries, unpack(ids))
    for index = 1, #ids do
      if packed[index] then
        local admitted, entry_lane, _, amounts = unpack_entry(packed[index])
        local enough = true
        for dimension = 1, WINDOWED do
          total_over[dimension] = total_over[dimension] - amounts[dimension]
          if gives[entry_lane] then
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
  for dimension = 1, WINDOWED do
    if limits[dimension] > 0 then
      local over = math.max(total_over[dimension], lane_over[dimension])
      rest = math.max(rest, over * window / limits[dimension])
    end
  end
  return math.min(last + rest, now + window)
end
