-- What is observed for the policy: a list of packed observations, the newest last, and who runs the
-- policy. An observation begins with its kind (0 told, 1 refused, 2 the call was refused that went
-- first), when, and of a refusal when the call was admitted and how long the provider wants to
-- wait; then of each dimension that is limited: its number, and
--   told     used, limit and reset by the provider's meter (-1: not told); and when the call was
--            admitted: drawn, not settled, in the window; and what was spent since, itself included
--   refused  what was reserved; drawn and spent when the call was admitted
local TOLD, REFUSAL, REFUSED_PROBE = 0, 1, 2
local HEAD_FORMAT, TOLD_FORMAT, REFUSED_FORMAT = '<Bddd', '<Bddddddd', '<Bddd'

local function log_observation(keys, state, observation)
  redis.call('RPUSH', keys.log, observation)
  state[LOGGED] = state[LOGGED] + 1
  if redis.call('LLEN', keys.log) > MOST_LOGGED then
    redis.call('LTRIM', keys.log, -MOST_LOGGED, -1)
  end
  redis.call('PEXPIRE', keys.log, HOUR / MILLISECOND)
end

-- What was in the dimensions when a call was admitted: drawn with what policies have changed since,
-- not settled, in the window, spent; nil where nothing was kept.
local function before_of(state, entry)
  if #entry.before ~= struct.size(BEFORE_FORMAT) then
    return nil
  end
  local was, before = { struct.unpack(BEFORE_FORMAT, entry.before) }, {}
  for dimension = 1, DIMENSIONS do
    local at = (dimension - 1) * DIMENSIONS
    local changed = state[dimension_slot(dimension) + CHANGED]
    before[dimension] = {
      drawn = was[at + 1] + changed,
      held = was[at + 2],
      total = was[at + 3],
      spent = was[at + 4],
    }
  end
  return before
end

-- The provider's meter, in the answer to a call: `told_by(dimension)` gives used, limit and reset.
local function log_told(keys, state, before, told_by, now)
  local parts = { struct.pack(HEAD_FORMAT, TOLD, now, 0, 0) }
  for dimension = 1, DIMENSIONS do
    local used, limit, reset = told_by(dimension)
    if state[dimension_slot(dimension) + MOST] > 0 and (used >= 0 or limit >= 0) then
      local was = before[dimension]
      parts[#parts + 1] = struct.pack(
        TOLD_FORMAT,
        dimension,
        used,
        limit,
        reset,
        was.drawn,
        was.held,
        was.total,
        state[dimension_slot(dimension) + SPENT] - was.spent
      )
    end
  end
  if #parts > 1 then
    log_observation(keys, state, table.concat(parts))
  end
end

local function log_refused(keys, state, before, entry, retry, now)
  local kind = entry.probe == 1 and REFUSED_PROBE or REFUSAL
  local parts = { struct.pack(HEAD_FORMAT, kind, now, entry.admitted, retry) }
  for dimension = 1, DIMENSIONS do
    if state[dimension_slot(dimension) + MOST] > 0 then
      local was, need = before[dimension], entry.amounts[dimension]
      parts[#parts + 1] = struct.pack(REFUSED_FORMAT, dimension, need, was.drawn, was.spent)
    end
  end
  log_observation(keys, state, table.concat(parts))
  state[URGENT] = 1
end

-- Whether the policy's task is free: one caller at a time has it, soon after a refusal, else at the
-- policy's pace.
local function is_task_free(state, now)
  if state[HANDED] == 0 then
    return true
  end
  if state[HANDED_DONE] == 0 then
    return now >= state[HANDED] + LEASE
  end
  return state[URGENT] == 1 or now >= state[HANDED] + PACE
end

-- What the policy needs: numbers (time, version, last observation, answers, and of each dimension
-- drawn and peak), what is known, and the observations.
local function reading_of(keys, state, now)
  local all = { now, state[VERSION], state[LOGGED], state[ANSWERS] }
  for dimension = 1, DIMENSIONS do
    local slot = dimension_slot(dimension)
    all[#all + 1] = state[slot + DRAWN]
    all[#all + 1] = state[slot + PEAK]
  end
  local packed = struct.pack('<' .. string.rep('d', #all), unpack(all))
  local reading = { packed, redis.call('GET', keys.known) or '' }
  for _, observation in ipairs(redis.call('LRANGE', keys.log, 0, -1)) do
    reading[#reading + 1] = observation
  end
  return reading
end
