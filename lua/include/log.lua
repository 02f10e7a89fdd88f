-- Observations for the policy: a list of packed observations, the newest last; and which caller
-- runs the policy. An observation begins with its kind (0 meter, 1 refused, 2 the probe was
-- refused) and its time; a refusal adds the call's admission and the wait that the provider asks
-- for. Then follow for each limited dimension its number, and
--   meter    used, limit and reset by the provider's meter (-1: not stated); and at the call's
--            admission: drawn, not settled, in the window; and what was spent since, the call
--            included
--   refused  what was reserved; drawn and spent at the call's admission
local METER, REFUSAL, REFUSED_PROBE = 0, 1, 2
-- Of each dimension before an admission: drawn, not settled, in the window, spent.
local FIELDS = 4
local HEAD_FORMAT, METER_FORMAT, REFUSED_FORMAT = '<Bddd', '<Bddddddd', '<Bddd'

local function log_observation(keys, state, observation)
  redis.call('RPUSH', keys.log, observation)
  state[LOGGED] = state[LOGGED] + 1
  if redis.call('LLEN', keys.log) > MOST_LOGGED then
    redis.call('LTRIM', keys.log, -MOST_LOGGED, -1)
  end
  redis.call('PEXPIRE', keys.log, HOUR / MILLISECOND)
end

-- The state of the dimensions before a call's admission: drawn, with what policies have changed
-- since; not settled; in the window; spent. Nil if it was not stored.
local function state_before(state, entry)
  if #entry.before ~= struct.size(BEFORE_FORMAT) then
    return nil
  end
  local was, before = { struct.unpack(BEFORE_FORMAT, entry.before) }, {}
  for dimension = 1, DIMENSIONS do
    local at = (dimension - 1) * FIELDS
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

-- Logs the provider's meter from an answer. `read_meter(dimension)` returns used, limit and reset.
local function log_meter(keys, state, before, read_meter, now)
  local parts = { struct.pack(HEAD_FORMAT, METER, now, 0, 0) }
  for dimension = 1, DIMENSIONS do
    local used, limit, reset = read_meter(dimension)
    if state[dimension_slot(dimension) + MOST] > 0 and (used >= 0 or limit >= 0) then
      local was = before[dimension]
      parts[#parts + 1] = struct.pack(
        METER_FORMAT,
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

local function log_refusal(keys, state, before, entry, retry, now)
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

-- Whether the policy's task is free: one caller at a time has it, soon after a refusal, otherwise
-- at the policy's pace.
local function is_task_free(state, now)
  if state[HANDED] == 0 then
    return true
  end
  if state[HANDED_DONE] == 0 then
    return now >= state[HANDED] + TASK_LEASE
  end
  return state[URGENT] == 1 or now >= state[HANDED] + PACE
end

-- The policy's input: numbers (time, version, last observation, answers, and for each dimension
-- drawn and peak), what is known, and the observations.
local function policy_reading(keys, state, now)
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
