-- How long until there is room at the present rate, and what a call waits for.

-- A lane's part of the rate while other lanes wait too. A lane with nothing guaranteed gets what
-- the others leave.
local function rate_part(state, quota, lane)
  local share, sum = quota[LANE_SHARES + 2 * lane - 1], 0
  for other = 1, state[LANES] do
    if other == lane or waiting_work(state, other) > 0 then
      sum = sum + (quota[LANE_SHARES + 2 * other - 1] or 0)
    end
  end
  return share > 0 and share / sum or 1
end

-- The most of a limit that a lane may have; one call at least.
local function most_of_lane(most, ceiling)
  return math.max(1, most * ceiling)
end

-- The part of a dimension's limit that a unit of work takes on average. Rather too small: a caller
-- that comes too early asks again, and one that comes too late leaves room unused.
local function mix_of(state, slot)
  if state[PROGRESS] <= 0 then
    return 1
  end
  local part = state[slot + TOTAL] / state[slot + MOST] / state[PROGRESS] * GRAIN
  return math.max(0, math.min(1, part))
end

-- How long the present rate takes for all waiting callers of a lane.
local function queue_time(state, quota, lane)
  local longest, waiting, part = 0, waiting_work(state, lane), rate_part(state, quota, lane)
  for dimension = 1, DIMENSIONS do
    local slot = dimension_slot(dimension)
    local most = state[slot + MOST]
    if most > 0 then
      local time = waiting * most * mix_of(state, slot) / (state[slot + RATE] * part)
      longest = math.max(longest, time)
    end
  end
  return longest
end

-- The wait to return: none beyond the horizon. Longer ones are spread over the horizon's second
-- half by their turns, so that the callers do not come back together.
local function spread_wait(state, quota, lane, wait, now)
  local horizon = math.max(state[HORIZON], closed_for(state, now))
  local near, last = horizon * HALF, math.max(wait, queue_time(state, quota, lane))
  if last <= horizon or wait <= near then
    return wait
  end
  return near + (wait - near) / (last - near) * (horizon - near)
end

-- How long until the amount `over` has left the window. The first entries are read once for all
-- calls of a batch.
local function until_freed(keys, state, quota, dimension, over, rate, now)
  if not state.first then
    local ids = redis.call('ZRANGE', keys.ledger, 0, WALK - 1)
    state.first = #ids > 0 and redis.call('HMGET', keys.entries, unpack(ids)) or {}
  end
  local left, wait = over, 0
  for index, entry in ipairs(state.first) do
    if left <= 0 then
      break
    end
    if type(entry) == 'string' then
      entry = unpack_entry(entry)
      state.first[index] = entry
    end
    if entry then
      left = left - entry.amounts[dimension]
      wait = entry.admitted + quota[WINDOW] - now
    end
  end
  return wait + math.max(0, left) / rate
end

local function raise(obstacle, wait, hold, over)
  if wait > obstacle.wait then
    obstacle.wait, obstacle.hold, obstacle.over = wait, hold, over
  end
end

-- The work of a mean call in the window, nil if there is none.
local function mean_work(state)
  local calls = state[dimension_slot(REQUESTS) + TOTAL]
  return calls > 0 and state[PROGRESS] / GRAIN / calls or nil
end

-- Adds the wait until calls in flight end, if the limit leaves no place for the call and those
-- before it. A lane at its guaranteed share leaves their shares to other lanes that wait.
local function limit_in_flight(state, quota, lane, ahead, work, obstacle)
  local limit = flight_limit(state)
  if limit == 0 then
    return
  end
  local share, ceiling = quota[LANE_SHARES + 2 * lane - 1], quota[LANE_SHARES + 2 * lane]
  local own, over = state[lane_slot(lane) + LANE_FLIGHT], state[FLIGHT] + 1 - limit
  -- Below the limit only the lanes' shares and ceilings hold the call.
  local hold = over > 0 and BY_FLIGHT or BY_LANE
  if own + 1 > share * limit then
    for other = 1, state[LANES] do
      if other ~= lane and waiting_work(state, other) > 0 then
        local theirs = (quota[LANE_SHARES + 2 * other - 1] or 0) * limit
        local unused = theirs - state[lane_slot(other) + LANE_FLIGHT]
        over = over + math.floor(math.max(0, unused))
      end
    end
  end
  over = math.max(over, own + 1 - math.max(1, math.floor(ceiling * limit)))
  if ahead > 0 then
    hold = over > 0 and hold or BY_TURN
    local each = math.max(work, mean_work(state) or 0)
    over = over + math.max(1, each > 0 and math.floor(ahead / each + 0.5) or 1)
  end
  if over > 0 then
    local wait = over * state[LATENCY] / limit
    raise(obstacle, math.max(wait, PACE), hold, over)
  end
end

-- Whether calls of a lane are in the window.
local function has_calls(state, lane)
  local slot = lane_slot(lane) + USED
  for dimension = 1, DIMENSIONS do
    if state[slot + dimension] > 0 then
      return true
    end
  end
  return false
end

-- The work that a call of work `work` must leave to other lanes, in three numbers:
--   idle    for lanes that wait for nothing larger than this call: room for their next calls; for a
--           mean call where a lane has had none lately
--   saved   for lanes whose first caller is larger than this call: all that they have saved so far.
--           It is kept in the window, where smaller calls would otherwise always come first
--   ready   the part of `saved` of lanes that have enough for that caller now: it is kept in the
--           levels too
local function standby_of_others(state, quota, lane, work, now)
  local idle, saved, ready, _, capacity = 0, 0, 0, rate_of_work(state)
  local mean = mean_work(state) or math.huge
  for other = 1, state[LANES] do
    local slot = lane_slot(other)
    local stands, needs = state[slot + LANE_STANDBY], saves_for(state, other, now)
    if other ~= lane and needs > work then
      saved = saved + stands
      ready = ready + (stands >= needs and stands or 0)
    elseif other ~= lane then
      local share = quota[LANE_SHARES + 2 * other - 1] or 0
      local standby = STANDBY * share * capacity
      idle = idle + math.min(stands, has_calls(state, other) and standby or math.min(standby, mean))
    end
  end
  return idle, saved, ready
end

-- How long until there is room for a call behind those before it.
local function until_room(keys, state, quota, lane, position, need, work, now)
  local obstacle, part = { wait = 0, hold = BY_TURN, over = 0 }, rate_part(state, quota, lane)
  local idle, saved, ready = standby_of_others(state, quota, lane, work, now)
  if state[lane_slot(lane) + LANE_STANDBY] >= work then
    -- A lane gets what it has saved at the whole rate.
    part = 1
  end
  local ceiling, in_turn, level = quota[LANE_SHARES + 2 * lane], position.ahead > 0, 0
  for dimension = 1, DIMENSIONS do
    local slot, amount = dimension_slot(dimension), need[dimension]
    local most = state[slot + MOST]
    level = math.max(level, state[slot + DRAWN])
    if most > 0 and amount > 0 then
      local capacity, rate = usable(state, dimension), state[slot + RATE] * part
      local ahead = position.ahead * most * mix_of(state, slot)
      local kept = math.min((idle + ready) * most, capacity)
      -- A call larger than the capacity goes when nothing is drawn: then the lack is exactly zero.
      -- But it leaves to other lanes what they have saved.
      local largest = capacity - math.min(idle * most, capacity)
      local wanted = ahead > 0 and ahead + amount or math.min(amount, largest)
      local lack = wanted + state[slot + DRAWN] - (capacity - kept)
      local hold = lack > kept and dimension or BY_LANE
      raise(obstacle, lack / rate, in_turn and BY_TURN or hold, lack)
      local over = state[slot + TOTAL] + ahead + amount + saved * most - state[slot + PLAN_WINDOW]
      if over > 0 then
        local wait = until_freed(keys, state, quota, dimension, over, rate, now)
        hold = over > saved * most and BY_WINDOW + dimension or BY_LANE
        raise(obstacle, wait, in_turn and BY_TURN or hold, over)
      end
      if ceiling < 1 then
        local used = state[lane_slot(lane) + USED + dimension]
        over = used + ahead + amount - most_of_lane(most, ceiling)
        raise(obstacle, over / rate, in_turn and BY_TURN or BY_LANE, over)
      end
    end
  end
  -- Absent callers hold no place: they pass while nothing is drawn, else the first is expected.
  local is_awaited = level == 0 or saves_for(state, lane, now) > 0
  limit_in_flight(state, quota, lane, is_awaited and position.ahead or 0, work, obstacle)
  return obstacle
end
