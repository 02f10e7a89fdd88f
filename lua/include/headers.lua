-- What a provider's own meter and its refusals teach about bursts.

-- The amounts of all calls that were admitted after `admitted`, or nil where they are a thousand.
local function amounts_since(keys, admitted)
  local sums = { 0, 0, 0, 0 }
  local after = '(' .. string.format('%.0f', admitted)
  local ids =
    redis.call('ZRANGEBYSCORE', keys.ledger, after, '+inf', 'LIMIT', 0, 1000)
  if #ids == 1000 then
    return nil
  end
  local packed = #ids > 0 and redis.call('HMGET', keys.entries, unpack(ids)) or {}
  for index = 1, #ids do
    if packed[index] then
      local _, _, _, amounts = unpack_entry(packed[index])
      for dimension = 1, WINDOWED do
        sums[dimension] = sums[dimension] + amounts[dimension]
      end
    end
  end
  return sums
end

-- A meter told with the answer to a call that was admitted at `admitted` counts what went before;
-- what was admitted since is added, and the output that calls in flight have yet to write. What it
-- has forgotten of our window is credit, and what it has left may go at once. Every limit must be
-- told: one that is not might be spent. Twice a second is enough.
local function believe(keys, state, burst, model, limits, call, observed_at, admitted, now)
  local recent = now - burst.looked_at < 500000 or admitted < burst.told_at
  if recent or now - burst.refused_at < model[WINDOW] then
    return
  end
  for dimension = 1, WINDOWED do
    if limits[dimension] > 0 and call[observed_at + dimension] == 0 then
      return
    end
  end
  -- Those of the second before may have come to the provider later.
  local since = amounts_since(keys, admitted - 1000000)
  if not since then
    return
  end
  local left = math.huge
  for dimension = 1, WINDOWED do
    local limit, slot = limits[dimension], dimension_slot(dimension)
    if limit > 0 then
      local by_now = call[observed_at + dimension] - 1 + since[dimension]
      if dimension >= OUTPUT then
        by_now = by_now + state[dimension_slot(OUTPUT) + HELD]
      end
      local used = by_now + cushion(state, dimension, limit)
      burst.credit[dimension] = math.max(0, state[slot + TOTAL] - used)
      left = math.min(left, (limit - used) / limit * model[WINDOW])
      if is_bucket(burst, model) then
        -- The pace clock is the bucket's level: at most what may be used by now, and at least what
        -- was used when the call was admitted, less the refill since.
        local most = now + by_now * model[WINDOW] / limit
        local least = admitted + (call[observed_at + dimension] - 1) * model[WINDOW] / limit
        state[slot + PACE] = math.max(least, math.min(state[slot + PACE], most))
      end
    end
  end
  burst.looked_at, burst.told_at = now, admitted
  local to = pace_ahead(state, limits, now) + left
  widen(burst, state, math.min(to, most_allowed(burst, model, now)))
end

-- A refusal ends all credit. If the window was less than 80 % full it was the burst that was
-- refused, and half of it goes well; at most once in ten seconds, because a burst is refused often.
local function learn_refusal(burst, state, model, limits, credit, now)
  for dimension = 1, WINDOWED do
    burst.credit[dimension] = 0
  end
  burst.refused_at, burst.steady_until = now, now + model[WINDOW]
  local was = math.min(burst.allowance, pace_ahead(state, limits, now))
  if now - burst.ceiling_at < 10000000 or fullness(state, limits, credit) >= 0.8 then
    return
  end
  if burst.allowance > model[TOLERANCE] then
    burst.ceiling, burst.ceiling_at = math.max(model[TOLERANCE], was * 0.5), now
    burst.allowance = burst.ceiling
  end
end
