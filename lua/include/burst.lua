-- How far calls may run ahead of an even pace, where that is learned (the model's number 12 is more
-- than its tolerance): what a provider lets through at once. A key of its own, packed doubles: the
-- fields of `pack_burst` in their order. A dimension's credit is what is still in our window, but
-- by the provider's own meter no longer in its; `told` is what that meter told last. Times and the
-- allowance (of pace) are in microseconds; a ceiling of 0 is none. `lowest` is the least part of a
-- bucket at which the provider's resets were those of a token bucket (0: they were not, or are not
-- told), `refilling` is 1 when that has proved to be one, -1 when it is likely, -0.5 when a reset
-- has told so exactly.
local BURST_FORMAT = '<ddddddddddddddddddddd'
-- As much of pace may be tried though nothing shows that it goes well.
local UNPROVEN = 10000000

local function new_burst(state, model, now)
  return {
    allowance = model[TOLERANCE],
    grew_at = now,
    steady_until = 0,
    ceiling = 0,
    ceiling_at = 0,
    of_epoch = state[EPOCH],
    born_at = now,
    used_at = now,
    told_at = 0,
    looked_at = 0,
    refused_at = 0,
    lowest = 0,
    refilling = 0,
    credit = { 0, 0, 0, 0 },
    told = { 0, 0, 0, 0 },
  }
end

-- The clock may have been set back; only steadiness lies ahead.
local function unpack_burst(packed, model, now)
  local kept = { struct.unpack(BURST_FORMAT, packed) }
  return {
    packed = packed,
    allowance = kept[1],
    grew_at = math.min(kept[2], now),
    steady_until = math.min(kept[3], now + model[WINDOW]),
    ceiling = kept[4],
    ceiling_at = math.min(kept[5], now),
    of_epoch = kept[6],
    born_at = math.min(kept[7], now),
    used_at = math.min(kept[8], now),
    told_at = math.min(kept[9], now),
    looked_at = math.min(kept[10], now),
    refused_at = math.min(kept[11], now),
    lowest = kept[12],
    refilling = kept[13],
    credit = { kept[14], kept[15], kept[16], kept[17] },
    told = { kept[18], kept[19], kept[20], kept[21] },
  }
end

-- nil where the tolerance is as configured.
local function load_burst(keys, state, model, now)
  if model[BURST_MAX] <= model[TOLERANCE] then
    return nil
  end
  local packed = redis.call('GET', keys.burst)
  local whole = packed and #packed == struct.size(BURST_FORMAT)
  local burst = whole and unpack_burst(packed, model, now) or new_burst(state, model, now)
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
  local credit, told = burst.credit, burst.told
  return struct.pack(
    BURST_FORMAT,
    burst.allowance,
    burst.grew_at,
    burst.steady_until,
    burst.ceiling,
    burst.ceiling_at,
    burst.of_epoch,
    burst.born_at,
    burst.used_at,
    burst.told_at,
    burst.looked_at,
    burst.refused_at,
    burst.lowest,
    burst.refilling,
    credit[1],
    credit[2],
    credit[3],
    credit[4],
    told[1],
    told[2],
    told[3],
    told[4]
  )
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
    local A_WEEK = 604800000000
    local weeks = math.floor((now - burst.ceiling_at) / A_WEEK)
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

-- Whether the limits are known to be those of a token bucket; a refused burst makes them unknown.
local function is_bucket(burst, model, likely)
  local refilling = burst and (burst.refilling > 0 or likely and burst.refilling <= -1)
  return burst and (model[BUCKET] > 0 or refilling) and burst.ceiling == 0
end

-- What the fullest limit has left, but for what is kept for other lanes: as the time that it takes
-- at an even pace.
local function left_of(state, model, limits, credit, kept)
  local left = math.huge
  for dimension = 1, WINDOWED do
    local limit, total = limits[dimension], state[dimension_slot(dimension) + TOTAL]
    if limit > 0 then
      local part = (limit + credit[dimension] - total) / limit - kept[dimension]
      left = math.min(left, part * model[WINDOW])
    end
  end
  return left
end

-- How much faster than the limits the pace clock runs. A bucket's is its level; and one that has
-- refused a burst must not be drained in its stead.
local function pace_speed(burst, model)
  local refused = burst and burst.ceiling > 0 and burst.allowance >= 2 * model[TOLERANCE]
  return (refused or is_bucket(burst, model)) and 1 or PACE_SPEEDUP
end

-- What is left of a bucket for what is not reckoned right, such as calls in flight that were
-- estimated too low. It costs depth once, and no rate.
local function cushion(state, dimension, limit)
  local CUSHION, CUSHION_OF_HELD = 0.04, 0.1
  return CUSHION * limit + CUSHION_OF_HELD * state[dimension_slot(dimension) + HELD]
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
local function room_now(burst, state, model, limits, lanes, now)
  local WORTH_WAKING = 1000000
  local known = is_bucket(burst, model) or (burst and (burst.widened or 0) >= WORTH_WAKING)
  if not known or state[GATE] > now then
    return 0
  end
  local credit = credits(burst, state, model, limits, now)
  local kept = kept_for_others(state, model, nil, lanes, limits, now)
  local room = burst.allowance * (1 - kept.most) - pace_ahead(state, limits, now)
  room = math.min(room, left_of(state, model, limits, credit, kept))
  return room < WORTH_WAKING and 0 or math.floor(room / 1000) * 1000
end

-- Takes what has left the window out of the totals, and its credit with it.
local function expire_with_credit(keys, state, model, burst, now)
  if not burst then
    expire(keys, state, model, now)
    return
  end
  local before, credit = {}, burst.credit
  for dimension = 1, WINDOWED do
    before[dimension] = state[dimension_slot(dimension) + TOTAL]
  end
  expire(keys, state, model, now)
  for dimension = 1, WINDOWED do
    local left = math.max(0, before[dimension] - state[dimension_slot(dimension) + TOTAL])
    credit[dimension] = math.max(0, credit[dimension] - left)
  end
end
