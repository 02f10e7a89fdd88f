-- Lanes: guaranteed shares, borrowing and giving back.
-- A lane may use what the others leave: of each other lane its use and a small stand-by, its whole share only while it
-- is backlogged (it found no room in the last two seconds, and somebody still waits in it), and nothing while it has not
-- been seen for five minutes.
local STANDBY, BACKLOGGED, FORGOTTEN = 0.02, 2000000, 300000000

-- The part of each limit that `lane` may use now.
local function lane_capacity(state, model, lane, lanes, limits, amounts, now)
  local kept = { 0, 0, 0, 0, 0 }
  for other = 1, lanes do
    local slot = lane_slot(other)
    if other ~= lane and now - state[slot + SEEN_AT] < FORGOTTEN then
      local share, backlogged = model[LANE_SHARES + 2 * other - 1], now - state[slot + BACKLOGGED_AT] < BACKLOGGED
      for dimension = 1, IN_FLIGHT do
        local limit = limits[dimension]
        if limit > 0 then
          local guaranteed, standing_by = share * limit, state[slot + USED + dimension] + STANDBY * limit
          kept[dimension] = kept[dimension] + ((backlogged or guaranteed < standing_by) and guaranteed or standing_by)
        end
      end
    end
  end
  local share, ceiling = model[LANE_SHARES + 2 * lane - 1], model[LANE_SHARES + 2 * lane]
  for dimension = 1, IN_FLIGHT do
    local limit = limits[dimension]
    local capacity = math.min(ceiling * limit, math.max(share * limit, limit - kept[dimension]))
    -- A document larger than what the others leave still fits when they are quiet, and must not wait for ever.
    kept[dimension] = math.max(capacity, amounts[dimension])
  end
  return kept
end

-- By how many calls one more would be too many, in all or in this lane.
local function over_in_flight(state, lane_at, limits, capacity)
  local total = state[dimension_slot(IN_FLIGHT) + TOTAL] + 1 - limits[IN_FLIGHT]
  return math.max(total, state[lane_at + USED + IN_FLIGHT] + 1 - math.max(1, math.floor(capacity[IN_FLIGHT])))
end

-- How far ahead of the pace clock this lane may run: the whole tolerance, or half of it for a lane above its share
-- while others are about, so that a lane within its guarantee always finds the other half free.
local function lane_tolerance(state, model, lane, lanes, limits, now)
  local tolerance, share, used = model[TOLERANCE], model[LANE_SHARES + 2 * lane - 1], lane_slot(lane) + USED
  for dimension = 1, WINDOWED do
    if limits[dimension] > 0 and state[used + dimension] > share * limits[dimension] then
      for other = 1, lanes do
        if other ~= lane and now - state[lane_slot(other) + SEEN_AT] < FORGOTTEN then
          return tolerance / 2
        end
      end
      return tolerance
    end
  end
  return tolerance
end
