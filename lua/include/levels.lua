-- Refills levels with time. A level is stored as what is drawn ahead of the rate, so another
-- capacity changes no level, and a plan needs to write none.
local OPEN, PAUSED, EXHAUSTED, REFUSED = 0, 1, 2, 3

-- The limit on calls at once that is in force, 0 for none.
local function flight_limit(state)
  local limit, cap = state[CONCURRENT], state[CAP]
  return cap > 0 and (limit == 0 or cap < limit) and math.floor(cap) or limit
end

-- Rate and capacity in work, each from its tightest dimension; 0 without limits.
local function rate_of_work(state)
  local rate, capacity
  for dimension = 1, DIMENSIONS do
    local slot = dimension_slot(dimension)
    local most = state[slot + MOST]
    if most > 0 then
      rate = math.min(rate or math.huge, state[slot + RATE] / most)
      capacity = math.min(capacity or math.huge, state[slot + CAPACITY] / most)
    end
  end
  return rate or 0, capacity or 0
end

-- A call's work: the largest part that it takes of a limit. Where only calls at once are limited,
-- one part of them.
local function work_of(state, need)
  local work
  for dimension = 1, DIMENSIONS do
    local most = state[dimension_slot(dimension) + MOST]
    if most > 0 then
      work = math.max(work or 0, need[dimension] / most)
    end
  end
  return work or state[CONCURRENT] > 0 and 1 / state[CONCURRENT] or 0
end

-- The time from which levels refill. A provider that refuses states when it has room for the probe
-- call, and no more.
local function refills_from(state)
  return state[CLOSED] == REFUSED and state[GATE] + QUIET or 0
end

-- The work that a lane saves for: the most that its first caller in turn needs.
local function saves_for(state, lane, now)
  local slot = lane_slot(lane)
  return now < state[slot + NEED_UNTIL] and state[slot + NEED] or 0
end

local function refill(state, quota, now)
  local from = math.max(state[LATEST], refills_from(state))
  local passed = now - from
  if passed <= 0 then
    return
  end
  local unused = math.huge
  for dimension = 1, DIMENSIONS do
    local slot = dimension_slot(dimension)
    if state[slot + MOST] > 0 then
      local left = state[slot + DRAWN] - passed * state[slot + RATE]
      state[slot + DRAWN] = math.max(0, left)
      unused = math.min(unused, -left / state[slot + MOST])
    end
  end
  local full, rate, capacity = flight_limit(state), rate_of_work(state)
  if unused == math.huge and full > 0 then
    -- If only calls at once are limited, all of them pass in the time of one.
    unused = passed / math.max(state[LATENCY], PACE)
  end
  local is_full = full > 0 and state[FLIGHT] >= full
  local was_open = from >= state[GATE] and not is_full
  local is_unclaimed = unused > 0 and unused < math.huge and was_open
  for lane = 1, state[LANES] do
    local slot, share = lane_slot(lane), quota[LANE_SHARES + 2 * lane - 1] or 0
    if is_unclaimed then
      state[slot + PASSED] = state[slot + PASSED] + unused
    end
    local most = math.max(STANDBY * share * capacity, saves_for(state, lane, now))
    state[slot + LANE_STANDBY] = math.min(state[slot + LANE_STANDBY] + passed * rate * share, most)
  end
end

-- The state, brought to the present time, and that time; or nil and an error reply.
local function load_quota(keys, quota, clock_override)
  local state, now = load_state(keys, quota, clock(clock_override))
  if not state then
    return nil, now
  end
  refill(state, quota, now)
  state[LATEST] = now
  expire(keys, state, quota, now)
  return state, now
end

local function closed_for(state, now)
  return math.max(0, state[GATE] - now)
end

-- The part of the capacity that may be drawn now. While calls are under way, a bucket of tokens
-- keeps a margin, because their use is estimated.
local function usable(state, dimension)
  local slot = dimension_slot(dimension)
  local capacity = state[slot + CAPACITY]
  if dimension == REQUESTS or state[slot + PLAN_WINDOW] < math.huge then
    return capacity
  end
  return capacity - math.min(HALF * state[slot + HELD], NEVER_DRAWN * capacity)
end

-- The room that is left now, as the time that an even pace takes to use it.
local function room_now(state)
  local room
  for dimension = 1, DIMENSIONS do
    local slot = dimension_slot(dimension)
    if state[slot + MOST] > 0 then
      local level = usable(state, dimension) - state[slot + DRAWN]
      level = math.min(level, state[slot + PLAN_WINDOW] - state[slot + TOTAL])
      room = math.min(room or math.huge, level / state[slot + RATE])
    end
  end
  return state[CLOSED] == OPEN and math.max(0, room or 0) or 0
end
