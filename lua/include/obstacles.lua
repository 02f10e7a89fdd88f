-- What keeps a call from being admitted now, and for how long. `asked` is a question and what of
-- the limits it may use, see reserve-8.lua. Nothing is changed here.
local BY_TURN, BY_CANARY = 6, 7
-- A refused canary is refused in a fraction of a second; a slow answer is a good sign.
local CANARY_PATIENCE = 1000000

-- Of two obstacles the one that lasts longer counts.
local function obstruct(obstacle, wait, binding, deficit)
  if wait > obstacle.wait then
    obstacle.wait, obstacle.binding, obstacle.deficit = wait, binding, deficit
  end
end

-- Whether room comes back evenly, and not as calls leave our window: a bucket's, or where headers
-- tell of it.
local function refills(burst, model)
  return burst and (is_bucket(burst, model) or burst.told_at > 0)
end

-- How far ahead the pace is at least while the window is full and callers wait: nothing is saved up
-- for another burst but three seconds' worth, so that what leaves the window in a lump comes back
-- evenly. 0 where a meter refills evenly by itself.
local function spent_burst(burst, model)
  local SAVED_UP = 3000000
  return burst and not refills(burst, model) and math.max(0, burst.allowance - SAVED_UP) or 0
end

local function spend_burst(burst, state, model, over, now)
  for dimension = 1, burst and WINDOWED or 0 do
    local pace = dimension_slot(dimension) + PACE
    if over[dimension] > 0 then
      state[pace] = math.max(state[pace], now + spent_burst(burst, model))
    end
  end
end

-- How long the pace clocks are too far ahead; true if they and the lane's queue are idle. A call
-- may start while the pace is within its tolerance; a borrower's must also end there if it can.
-- Capacity that no call has used for 300 ms is anyone's.
local function keep_pace(asked, obstacle)
  local SPREAD, IDLE = 0.25, 300000
  local quota, limits = asked.quota, asked.limits
  local state, model, burst, now = quota.state, quota.model, quota.burst, quota.now
  local window = model[WINDOW]
  local borrows = borrows_in_company(state, model, asked.lane, asked.lanes, limits, now)
  local idle = state[asked.lane_at + HEAD] < now - IDLE
  for dimension = 1, WINDOWED do
    local limit, amount = limits[dimension], asked.amounts[dimension]
    if limit > 0 and amount > 0 then
      local pace = state[dimension_slot(dimension) + PACE]
      local own = amount * window / (limit * asked.speed)
      -- Output comes over the length of the call, and not at once.
      local late = dimension == OUTPUT and state[LATENCY] * SPREAD or 0
      local leave = asked.tolerance + late
      if borrows then
        leave = leave - asked.kept[dimension] * asked.tolerance
      end
      local ahead = pace - now - (borrows and math.max(0, leave - own) or leave)
      obstruct(obstacle, ahead, dimension, ahead * limit / window)
      idle = idle and pace < now + spent_burst(burst, model) - IDLE
    end
  end
  return idle
end

-- By how much the call is too large for what the window has left, in all and in its lane; and how
-- long until use by others, if it alone is in the way, has faded far enough.
local function window_over(asked)
  local quota = asked.quota
  local state, window = quota.state, quota.model[WINDOW]
  local over = { total = { 0, 0, 0, 0 }, lane = { 0, 0, 0, 0 }, any = false, fading = 0 }
  for dimension = 1, WINDOWED do
    local limit, amount = asked.limits[dimension], asked.amounts[dimension]
    if limit > 0 and amount > 0 then
      local external = external_use(quota.tuning, dimension, limit, window, quota.now)
      local used = state[dimension_slot(dimension) + TOTAL] + external
      local total = used + amount - asked.roomy[dimension]
      if total > 0 then
        over.total[dimension], over.any = total, true
        local fades = total <= external
        over.fading = fades and math.max(over.fading, total * window / limit) or math.huge
      end
      local lane = state[asked.lane_at + USED + dimension] + amount - asked.capacity[dimension]
      if lane > 0 then
        over.lane[dimension], over.any, over.fading = lane, true, math.huge
      end
    end
  end
  return over
end

-- How long a call in flight takes, by the number of those that may be at once.
local function place_length(asked)
  local UNKNOWN_LATENCY = 1000000
  local latency = asked.quota.state[LATENCY]
  return (latency > 0 and latency or UNKNOWN_LATENCY) / asked.limits[IN_FLIGHT]
end

-- How long until a call in flight ends, where as many are in flight as may be.
local function keep_in_flight(asked, obstacle)
  if asked.limits[IN_FLIGHT] > 0 then
    local over = over_in_flight(asked.quota.state, asked.lane_at, asked.limits, asked.capacity)
    if over > 0 then
      obstruct(obstacle, over * place_length(asked), IN_FLIGHT, over)
    end
  end
end

-- After a refusal's pause one call goes first; the others wait for its answer, but not long.
local function keep_canary(asked, obstacle)
  local state = asked.quota.state
  if state[CANARY] > WANTED then
    obstruct(obstacle, state[CANARY] + CANARY_PATIENCE - asked.quota.now, BY_CANARY, 0)
  end
end

-- How long a caller's turn is, by what it will use of the fullest dimension and of the calls at
-- once.
local function turn_length(asked)
  local state, window = asked.quota.state, asked.quota.model[WINDOW]
  local limits, turn, slowest = asked.limits, 0, fullest(asked.quota.state, asked.limits)
  if slowest > 0 then
    local usually = asked.usual[slowest] * limits[slowest] / asked.roomy[slowest]
    -- A call of nothing in a lane that may have nothing takes no time.
    local time = usually > 0 and window / usually or 0
    turn = asked.amounts[slowest] * time * yield_of(state, slowest)
  end
  return limits[IN_FLIGHT] > 0 and math.max(turn, place_length(asked)) or turn
end

-- How long until enough has left the window.
local function wait_for_room(asked, over, obstacle)
  local quota, limits = asked.quota, asked.limits
  local now, window = quota.now, quota.model[WINDOW]
  local room = room_at(asked, over)
  -- Use by others fades steadily and may be all that is in the way.
  room = math.min(room, now + over.fading)
  local most, refill = {}, 0
  for dimension = 1, WINDOWED do
    most[dimension] = math.max(over.total[dimension], over.lane[dimension])
    if most[dimension] > 0 then
      refill = math.max(refill, most[dimension] * window / limits[dimension])
    end
  end
  if refills(quota.burst, quota.model) then
    room = math.min(room, now + refill)
  end
  if room - now > obstacle.wait then
    obstacle.wait = room - now
    for dimension = 1, WINDOWED do
      if most[dimension] > 0 then
        obstacle.binding, obstacle.deficit = dimension, most[dimension]
      end
    end
  end
end
