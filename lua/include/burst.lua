-- How far calls may run ahead of an even pace, where that is learned (the model's number 12 is more
-- than its tolerance): what a provider lets through at once. A key of its own, packed doubles: the
-- fields below in their order, then for each dimension its credit, which is what is still in our
-- window, but by the provider's own meter no longer in its, and what that meter told last. Times
-- and the allowance (of pace) are in microseconds; a ceiling of 0 is none. `lowest` is the least
-- part of a bucket at which the provider's resets were those of a token bucket (0: they were not,
-- or are not told), `refilling` is 1 when that has proved to be one.
local BURST_FIELDS = {
  'allowance', 'grew_at', 'steady_until', 'ceiling', 'ceiling_at', 'of_epoch', 'born_at', 'used_at',
  'told_at', 'looked_at', 'refused_at', 'lowest', 'refilling',
}
-- A window fuller than this says nothing about bursts.
local TOO_FULL = 0.9

-- nil where the tolerance is as configured.
local function load_burst(keys, state, model, now)
  if model[BURST_MAX] <= model[TOLERANCE] then
    return nil
  end
  local packed, count = redis.call('GET', keys.burst), #BURST_FIELDS + 2 * WINDOWED
  local burst = { packed = packed, credit = { 0, 0, 0, 0 }, told = { 0, 0, 0, 0 } }
  for _, field in ipairs(BURST_FIELDS) do
    burst[field] = 0
  end
  if packed and #packed == count * 8 then
    local told = { struct.unpack('<' .. string.rep('d', count), packed) }
    for index, field in ipairs(BURST_FIELDS) do
      -- The clock may have been set back; only steadiness lies ahead.
      local ahead = field == 'steady_until' and model[WINDOW] or 0
      local is_time = field:find('_at$') or ahead > 0
      burst[field] = is_time and math.min(told[index], now + ahead) or told[index]
    end
    burst.credit = { unpack(told, #BURST_FIELDS + 1, #BURST_FIELDS + WINDOWED) }
    burst.told = { unpack(told, #BURST_FIELDS + WINDOWED + 1, count) }
  else
    burst.allowance, burst.grew_at, burst.born_at, burst.used_at = model[TOLERANCE], now, now, now
    burst.of_epoch = state[EPOCH]
  end
  if burst.of_epoch ~= state[EPOCH] then
    -- A new state. After a silence the provider's bucket is full, and what was learned holds; a
    -- state that was lost begins with nothing known.
    if now - burst.used_at < 2 * model[WINDOW] then
      burst.allowance, burst.born_at = model[TOLERANCE], now
    end
    burst.of_epoch, burst.told_at = state[EPOCH], 0
    burst.credit, burst.told = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }
  end
  return burst
end

local function pack_burst(burst)
  local kept = {}
  for index, field in ipairs(BURST_FIELDS) do
    kept[index] = burst[field]
  end
  for _, amounts in ipairs({ burst.credit, burst.told }) do
    for dimension = 1, WINDOWED do
      kept[#kept + 1] = amounts[dimension]
    end
  end
  return struct.pack('<' .. string.rep('d', #kept), unpack(kept))
end

-- Lives for thirty days after its last use, which is noted every quarter of a window.
local function save_burst(keys, burst, model, now)
  if burst and (now - burst.used_at > model[WINDOW] / 4 or pack_burst(burst) ~= burst.packed) then
    burst.used_at = now
    redis.call('SET', keys.burst, pack_burst(burst), 'EX', 2592000)
  end
end

-- Calls from before what is known: the state was lost while the fleet worked, and the provider's
-- bucket is as empty as it was. Nothing grows for a window.
local function begin_steady(burst, model, now)
  if burst and now - burst.born_at < model[WINDOW] then
    burst.steady_until = burst.born_at + model[WINDOW]
  end
end

-- A ceiling that a refusal taught rises by itself once more each week.
local function most_allowed(burst, model, now)
  local most = model[BURST_MAX]
  if burst.ceiling > 0 then
    local weeks = math.floor((now - burst.ceiling_at) / 604800000000)
    most = math.min(most, math.max(model[TOLERANCE], burst.ceiling * (1 + weeks)))
  end
  return most
end

-- How far the fullest pace clock is ahead.
local function pace_ahead(state, limits, now)
  local ahead = 0
  for dimension = 1, WINDOWED do
    if limits[dimension] > 0 then
      ahead = math.max(ahead, state[dimension_slot(dimension) + PACE] - now)
    end
  end
  return ahead
end

-- The fullest limit's part of the window that is used, credit taken off.
local function fullness(state, limits, credit)
  local most = 0
  for dimension = 1, WINDOWED do
    if limits[dimension] > 0 then
      local used = state[dimension_slot(dimension) + TOTAL] - credit[dimension]
      most = math.max(most, used / limits[dimension])
    end
  end
  return most
end

local function widen(burst, state, to)
  if to > burst.allowance then
    burst.widened = to - burst.allowance
    shift_queues(state, burst.allowance - to)
    burst.allowance = to
  end
end

-- Slow start: grows by 40 % a second (it doubles in two) while the pace is as far ahead as it may
-- be.
local function grow(burst, state, model, limits, credit, now)
  local GROWS_AT_MOST = 1000000
  local elapsed = math.min(now - burst.grew_at, GROWS_AT_MOST)
  if pace_ahead(state, limits, now) < burst.allowance then
    return
  end
  burst.grew_at = now
  if now >= burst.steady_until and fullness(state, limits, credit) < TOO_FULL then
    local to = burst.allowance * (1 + elapsed * 0.0000004)
    -- Until a call has come back ten seconds' worth is the most.
    local unproven = state[LATENCY] == 0 and 10000000 or math.huge
    widen(burst, state, math.min(to, unproven, most_allowed(burst, model, now)))
  end
end

-- Whether the limits are known to be those of a token bucket; a refused burst makes them unknown.
local function is_bucket(burst, model)
  return burst and (model[BUCKET] > 0 or burst.refilling > 0) and burst.ceiling == 0
end

-- When a call comes again whose turn is `wait` away: while a burst has room, those who are within
-- it come in order and up to twelve times sooner. Not while the window is full (a bucket's level is
-- its pace) or the head of the queue is held up for a second more than the pace holds it up, which
-- a burst may lift.
local function wait_in_burst(burst, state, model, limits, credit, head, wait, now)
  local room, ahead, to = 0, pace_ahead(state, limits, now), burst.allowance
  local held_up = head - now - math.max(0, ahead - to)
  local bucket = is_bucket(burst, model)
  if held_up <= 1000000 and (bucket or fullness(state, limits, credit) < TOO_FULL) then
    if now >= burst.steady_until and not bucket then
      to = math.max(to, most_allowed(burst, model, now))
    end
    room = math.max(0, to - ahead)
  end
  return math.min(wait, math.max(200000, wait / 12, wait - room))
end

-- How much faster than the limits the pace clock runs. A bucket's is its level; and one that has
-- refused a burst must not be drained in its stead.
local function pace_speed(burst, model)
  local refused = burst and burst.ceiling > 0 and burst.allowance >= 2 * model[TOLERANCE]
  return (refused or is_bucket(burst, model)) and 1 or PACE_SPEEDUP
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
  return burst and not refills(burst, model) and math.max(0, burst.allowance - 3000000) or 0
end

local function spend_burst(burst, state, model, over, now)
  for dimension = 1, burst and WINDOWED or 0 do
    local pace = dimension_slot(dimension) + PACE
    if over[dimension] > 0 then
      state[pace] = math.max(state[pace], now + spent_burst(burst, model))
    end
  end
end

-- What is left of a bucket for what is not reckoned right, such as calls in flight that were
-- estimated too low. It costs depth once, and no rate.
local function cushion(state, dimension, limit)
  local CUSHION = 0.04
  return CUSHION * limit + 0.1 * state[dimension_slot(dimension) + HELD]
end

-- What each limit may be exceeded by in our window, because the provider has forgotten as much of
-- it: by its headers. A bucket's use is told by its pace clock alone, whatever the window holds.
local function credits(burst, state, model, limits, now)
  local credit = { 0, 0, 0, 0, 0 }
  for dimension = 1, burst and WINDOWED or 0 do
    local limit = limits[dimension]
    credit[dimension] = burst.credit[dimension]
    if is_bucket(burst, model) and limit > 0 then
      local slot = dimension_slot(dimension)
      local used = math.max(0, state[slot + PACE] - now) * limit / model[WINDOW]
      credit[dimension] = state[slot + TOTAL] - used - cushion(state, dimension, limit)
    end
  end
  return credit
end

-- How much may go at once now, of pace, if that has just been learned, or is a bucket's: who waits
-- may be woken for it. In whole milliseconds; 0 for less than a second's worth, which turns bring
-- by themselves.
local function room_now(burst, state, model, limits, now)
  local WORTH_WAKING = 1000000
  local known = is_bucket(burst, model) or (burst and (burst.widened or 0) >= WORTH_WAKING)
  if not known or state[GATE] > now then
    return 0
  end
  local credit = credits(burst, state, model, limits, now)
  local room = burst.allowance - pace_ahead(state, limits, now)
  for dimension = 1, WINDOWED do
    local limit, total = limits[dimension], state[dimension_slot(dimension) + TOTAL]
    if limit > 0 then
      room = math.min(room, (limit + credit[dimension] - total) / limit * model[WINDOW])
    end
  end
  return room < WORTH_WAKING and 0 or math.floor(room / 1000) * 1000
end

-- Takes what has left the window out of the totals, and its credit with it.
local function expire_with_credit(keys, state, model, burst, now)
  local before = {}
  for dimension = 1, WINDOWED do
    before[dimension] = state[dimension_slot(dimension) + TOTAL]
  end
  expire(keys, state, model, now)
  for dimension = 1, burst and WINDOWED or 0 do
    local left = math.max(0, before[dimension] - state[dimension_slot(dimension) + TOTAL])
    burst.credit[dimension] = math.max(0, burst.credit[dimension] - left)
  end
end
