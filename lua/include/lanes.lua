-- Lanes: guaranteed shares, borrowing and giving back. A lane may use what the others leave: of
-- each other lane its use and a small stand-by, its whole share only while it is backlogged (it
-- found no room in the last two seconds, and a caller still waits in it), and nothing while it has
-- not been seen for five minutes.
local BACKLOGGED = 2000000

-- The part of each limit that `lane` may use now, and the part that it can count on while the
-- others' use stays as it is: its turns are spaced by that, because backlogs of the others come and
-- go.
local function lane_capacity(state, model, lane, lanes, limits, amounts, now)
  local STANDBY = 0.02
  local kept, kept_usually = { 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0 }
  for other = 1, lanes do
    local slot = lane_slot(other)
    if other ~= lane and now - state[slot + SEEN_AT] < FORGOTTEN then
      local share = model[LANE_SHARES + 2 * other - 1]
      local backlogged = now - state[slot + BACKLOGGED_AT] < BACKLOGGED
      for dimension = 1, IN_FLIGHT do
        local limit = limits[dimension]
        if limit > 0 then
          local guaranteed = share * limit
          local usually = math.min(guaranteed, state[slot + USED + dimension] + STANDBY * limit)
          kept[dimension] = kept[dimension] + (backlogged and guaranteed or usually)
          kept_usually[dimension] = kept_usually[dimension] + usually
        end
      end
    end
  end
  local share, ceiling = model[LANE_SHARES + 2 * lane - 1], model[LANE_SHARES + 2 * lane]
  for dimension = 1, IN_FLIGHT do
    local limit, amount = limits[dimension], amounts[dimension]
    local least, most = share * limit, ceiling * limit
    -- A document larger than what the others leave still fits when they are quiet, and must not
    -- wait for ever.
    local left, usually_left = limit - kept[dimension], limit - kept_usually[dimension]
    kept[dimension] = math.max(math.min(most, math.max(least, left)), amount)
    kept_usually[dimension] = math.max(math.min(most, math.max(least, usually_left)), amount)
  end
  return kept, kept_usually
end

-- By how many calls one more would be too many, in all or in this lane.
local function over_in_flight(state, lane_at, limits, capacity)
  local total = state[dimension_slot(IN_FLIGHT) + TOTAL] + 1 - limits[IN_FLIGHT]
  local own = math.max(1, math.floor(capacity[IN_FLIGHT]))
  return math.max(total, state[lane_at + USED + IN_FLIGHT] + 1 - own)
end

-- Whether a lane above its share is in company: then it leaves what is kept, and the pace's
-- tolerance, to the others.
local function borrows_in_company(state, model, lane, lanes, limits, now)
  local share, used = model[LANE_SHARES + 2 * lane - 1], lane_slot(lane) + USED
  for dimension = 1, WINDOWED do
    if limits[dimension] > 0 and state[used + dimension] > share * limits[dimension] then
      for other = 1, lanes do
        if other ~= lane and now - state[lane_slot(other) + SEEN_AT] < FORGOTTEN then
          return true
        end
      end
      return false
    end
  end
  return false
end
