-- What a provider's own meter and its refusals teach about bursts.

-- Calls that were admitted within this of each other come to the provider in any order.
local TOGETHER = 1000000
-- A refusal while the window is less full was a burst's, and says nothing of the rate.
local FULL = 0.8

-- What a meter that was told with a call of `told_at` cannot have counted: of the calls that were
-- admitted together with it those under way, of later ones all; and the output of those under way.
-- nil where they are a thousand.
local function uncounted(keys, told_at)
  local COUNTED_SINCE = 1000
  local sums, output = { 0, 0, 0, 0 }, 0
  local after = '(' .. string.format('%.0f', told_at - TOGETHER)
  local ids = redis.call('ZRANGEBYSCORE', keys.ledger, after, '+inf', 'LIMIT', 0, COUNTED_SINCE)
  if #ids == COUNTED_SINCE then
    return nil
  end
  local packed = #ids > 0 and redis.call('HMGET', keys.entries, unpack(ids)) or {}
  for index = 1, #ids do
    if packed[index] then
      local admitted, _, condition, amounts = unpack_entry(packed[index])
      if condition == RESERVED or admitted > told_at + TOGETHER then
        for dimension = 1, WINDOWED do
          sums[dimension] = sums[dimension] + amounts[dimension]
        end
        output = output + (condition == RESERVED and amounts[OUTPUT] or 0)
      end
    end
  end
  return sums, output
end

-- Whether resets are those of a token bucket as deep as a minute: a meter of another kind may tell
-- such a time at one level by chance, but not at a second one that is a fifth of the limit higher,
-- and nothing else in between. A time that is exact makes it likely at twice the lowest level.
-- `refill` is 0 where it is not told, 1 if it is not such a bucket's, else 2, or 4 if it is exact,
-- and the part of the bucket that is used.
local function learn_refill(burst, refill)
  local RISES, LIKELY, EXACT = 0.2, 2, 4
  if refill == 1 then
    burst.lowest, burst.refilling = 0, 0
  elseif refill >= 2 then
    local exact = refill >= EXACT
    local level = math.max(refill - (exact and EXACT or 2), 0.000001)
    burst.lowest = burst.lowest > 0 and math.min(burst.lowest, level) or level
    if level - burst.lowest >= RISES then
      burst.refilling = 1
    elseif exact and burst.refilling <= 0 then
      local likely = level >= LIKELY * burst.lowest
      burst.refilling = likely and -1 or math.min(burst.refilling, -0.5)
    end
  end
end

-- A meter told with the answer to a call that was admitted at `admitted` counts what went before;
-- what it cannot have counted is added, and the output that calls in flight have yet to write. Of
-- calls that were admitted together the one that tells most came last. What the meter has forgotten
-- of our window is credit, and what it has left may go: of what tells of a token bucket at once,
-- else up to ten seconds' worth or twice what may go now, since headers may tell of a minute where
-- less time is enforced as well. Of limits that refusals have shown to be lower nothing is left as
-- headers say. Every limit must be told: one that is not might be spent. To look twice a second is
-- enough, and when nothing is in flight any more. True if what was told was taken up.
local function believe(keys, state, burst, model, tuning, call, observed_at, admitted, now)
  local HEADERS_EVERY, DOUBLES, BELIEVED = 500000, 2, 0.9
  local limits = limits_now(model, tuning)
  if tuning and tuning[FACTOR] < BELIEVED then
    return
  end
  if admitted < burst.told_at - TOGETHER or now - burst.refused_at < model[WINDOW] then
    return
  end
  for dimension = 1, WINDOWED do
    if limits[dimension] > 0 and call[observed_at + dimension] == 0 then
      return
    end
  end
  local later = admitted > burst.told_at + TOGETHER
  for dimension = 1, WINDOWED do
    local told = math.max(0, call[observed_at + dimension] - 1)
    burst.told[dimension] = later and told or math.max(burst.told[dimension], told)
  end
  burst.told_at = later and admitted or burst.told_at
  local idle = state[dimension_slot(IN_FLIGHT) + TOTAL] == 0
  if now - burst.looked_at < HEADERS_EVERY and not idle then
    return true
  end
  local since, output = uncounted(keys, burst.told_at)
  if not since then
    return true
  end
  local left = math.huge
  for dimension = 1, WINDOWED do
    local limit, slot = limits[dimension], dimension_slot(dimension)
    if limit > 0 then
      local by_now = burst.told[dimension] + since[dimension]
      if dimension >= OUTPUT then
        by_now = by_now + state[dimension_slot(OUTPUT) + HELD] - output
      end
      local used = by_now + cushion(state, dimension, limit)
      burst.credit[dimension] = math.max(0, state[slot + TOTAL] - used)
      left = math.min(left, (limit - used) / limit * model[WINDOW])
      if is_bucket(burst, model) then
        -- The pace clock is the bucket's level: at most what may be used by now, and at least what
        -- was used when it was told, less the refill since.
        local most = now + by_now * model[WINDOW] / limit
        local least = burst.told_at + burst.told[dimension] * model[WINDOW] / limit
        state[slot + PACE] = math.max(least, math.min(state[slot + PACE], most))
      end
    end
  end
  burst.looked_at = now
  local to = pace_ahead(state, limits, now) + left
  local tells_of_bucket = burst.refilling ~= 0 and burst.ceiling == 0
  if not is_bucket(burst, model) and not tells_of_bucket then
    to = math.min(to, math.max(UNPROVEN, DOUBLES * burst.allowance))
  end
  widen(burst, state, math.min(to, most_allowed(burst, model, now)))
  return true
end

-- A refusal ends all credit. If the window was less than 80 % full it was the burst that was
-- refused, and half of it goes well; at most once in ten seconds, because a burst is refused often.
-- Else a bucket is emptier than was thought: nothing is left of it now. A call that goes first,
-- before all others, is no burst. Where bounds seemed not to be held, they may be: they are
-- reserved again, and what their calls count as is found anew.
local function learn_refusal(burst, state, model, limits, credit, alone, now)
  local LESSON_ONCE_IN, WENT_WELL, HELD_AFTER_ALL = 10000000, 0.5, 5
  for dimension = 1, WINDOWED do
    burst.credit[dimension] = 0
  end
  if not alone then
    burst.refused_at, burst.steady_until = now, now + model[WINDOW]
  end
  local was = math.min(burst.allowance, pace_ahead(state, limits, now))
  if fullness(state, limits, credit) >= FULL then
    for dimension = 1, is_bucket(burst, model) and WINDOWED or 0 do
      local slot, limit = dimension_slot(dimension), limits[dimension]
      if limit > 0 and state[slot + TOTAL] - credit[dimension] >= FULL * limit then
        state[slot + PACE] = math.max(state[slot + PACE], now + model[WINDOW])
      end
    end
    return
  end
  if not alone and holds_nothing(state) then
    local span = starving_slot(state) + STARVING
    for place, number in ipairs({ now, 0, 0, 0, 0, HELD_AFTER_ALL }) do
      state[span + place] = number
    end
  end
  local deep = burst.allowance > model[TOLERANCE]
  if not alone and now - burst.ceiling_at >= LESSON_ONCE_IN and deep then
    burst.ceiling, burst.ceiling_at = math.max(model[TOLERANCE], was * WENT_WELL), now
    burst.allowance = burst.ceiling
  end
end
