-- What answers of the provider change: limits, calls in flight, use by others.

-- A limit that the provider states, with the minute in which it does.
local function stated_now(limit, now)
  return limit + minute_of(now) / MINUTES_KEPT
end

-- What part of the limits in force there is at most, 1 where it is not known: since they were
-- lowered last, or the gate opened, the provider let some calls through and then refused one, so it
-- had less to give in that time than all of these would use. Only the latest calls are looked at. A
-- refusal with a window less than 80 % full says nothing of the rate.
local function rate_shown(keys, state, limits, window, refused, since, now)
  local OPEN_FOR, LATEST_CALLS = 2000000, 256
  since = math.max(since, state[GATE])
  if now - since < OPEN_FOR or fullness(state, limits, { 0, 0, 0, 0 }) < FULL then
    return 1
  end
  local after = '(' .. string.format('%.0f', since)
  local ids = redis.call('ZREVRANGEBYSCORE', keys.ledger, '+inf', after, 'LIMIT', 0, LATEST_CALLS)
  local packed = #ids > 0 and redis.call('HMGET', keys.entries, unpack(ids)) or {}
  local wanted, shown = { unpack(refused) }, 0
  for index = 1, #ids do
    if packed[index] then
      local admitted, _, _, amounts = unpack_entry(packed[index])
      since = index == LATEST_CALLS and admitted or since
      for dimension = 1, WINDOWED do
        wanted[dimension] = wanted[dimension] + amounts[dimension]
      end
    end
  end
  for dimension = 1, WINDOWED do
    if limits[dimension] > 0 then
      shown = math.max(shown, wanted[dimension] / limits[dimension])
    end
  end
  return shown * window / math.min(window, now - since)
end

-- A refusal takes 2 % off, and 5 % where the last minute was not quiet: at most once in ten seconds
-- and down to half. Where what was let through since then shows a lower rate, or a quarter of the
-- calls that were admitted since is refused as well, the limit is another one than was thought: it
-- falls to what went well, by half at most at once, and may fall below half; there 2 % of the calls
-- must be refused for 2 % to go. Where all of them were, nothing is known of the rate: a provider
-- that lets nothing through is not asked for less by asking for less. What was taken off begins to
-- come back after a quiet minute. `refused` is when the call was admitted, and what was reserved.
local function lower_limits(keys, state, tuning, limits, window, refused, now)
  local STEP, AGAIN, LOWEST, ONCE_IN, QUIET = 0.02, 0.05, 0.5, 10000000, 60000000
  local ENOUGH_REFUSED, CLEARLY, MOST_AT_ONCE, LEAST = 3, 0.25, 0.5, 0.02
  local slot, lowered = refusals_slot(state), math.max(tuning[RECOVERED_TO], now) - QUIET
  local whole, part, well = tuning[FACTOR] == 1, 0, 1
  local quiet = whole or now >= tuning[RECOVERED_TO]
  if quiet then
    state[slot] = 0
  end
  if refused.admitted and refused.admitted > lowered and not whole then
    local after = '(' .. string.format('%.0f', lowered)
    local calls = math.max(1, redis.call('ZCOUNT', keys.ledger, after, '+inf'))
    state[slot] = state[slot] + 1
    part = state[slot] / calls
    well = rate_shown(keys, state, limits, window, refused.amounts, lowered, now)
    if state[slot] >= ENOUGH_REFUSED and part >= CLEARLY then
      well = math.min(well, 1 - part)
    end
  end
  if part >= 1 then
    return
  elseif well < 1 - AGAIN then
    tuning[FACTOR] = math.max(LEAST, tuning[FACTOR] * math.max(MOST_AT_ONCE, well))
  elseif whole or now >= lowered + ONCE_IN then
    if tuning[FACTOR] > LOWEST then
      tuning[FACTOR] = math.max(LOWEST, tuning[FACTOR] - (quiet and STEP or AGAIN))
    elseif part >= STEP then
      tuning[FACTOR] = math.max(LEAST, tuning[FACTOR] * (1 - STEP))
    end
  else
    return
  end
  tuning[RECOVERED_TO], state[slot] = now + QUIET, 0
end

-- An overload cuts the calls in flight to 70 %, at most once in two seconds; successes add 5 % of
-- the peak each time that all have been round once.
local function cut_in_flight(tuning, in_flight, now)
  local CUT, CUT_ONCE_IN = 0.7, 2000000
  if tuning[CAP] == 0 or now - tuning[CAPPED_AT] > CUT_ONCE_IN then
    if tuning[CAP] == 0 then
      tuning[CAP], tuning[PEAK] = in_flight, in_flight
    end
    tuning[CAP] = math.max(1, math.min(tuning[CAP], in_flight) * CUT)
    tuning[CAPPED_AT] = now
  end
end

local function raise_in_flight(tuning)
  local RAISE = 0.05
  if tuning and tuning[CAP] > 0 then
    tuning[CAP] = tuning[CAP] + math.max(1, RAISE * tuning[PEAK]) / tuning[CAP]
    if tuning[CAP] >= tuning[PEAK] then
      tuning[CAP] = 0
    end
  end
end

-- Differences of less than 3 % between a provider's meter and ours are rounding.
-- A provider's meter above ours is use by others on the same account; a limit below the configured
-- one is the truth. The meter is of the time when the call was admitted: what was in our window
-- then may have left it (as much as the limit gives in that time), and what is in flight may have
-- been estimated too low. Of a call that nobody knows, only the limit counts. Tuning begins only
-- when there is something to keep. A meter of every limit that shows no more use than ours says
-- that refusals have taken too much off: in quiet time 40 % of that comes back in a minute.
local function observe(state, tuning, model, call, observed_at, stated_at, admitted, now)
  local UNSURE, NOISE, SHOWN = 0.5, 0.03, 0.000000006666666666666667
  local agrees = admitted ~= nil
  for dimension = 1, WINDOWED do
    local slot, limit = tuned_slot(dimension), model[LIMITS + dimension]
    local stated = call[stated_at + dimension]
    local observed = admitted and call[observed_at + dimension] or 0
    agrees = agrees and (limit == 0 or observed > 0 and stated > 0)
    if limit > 0 and (stated > 0 or observed > 0) then
      local lower = stated > 0 and stated < limit * 0.999
      local of_state = dimension_slot(dimension)
      local external = observed > 0 and observed - 1 - state[of_state + TOTAL] or 0
      local left = observed > 0 and (now - admitted) / model[WINDOW] * limit or 0
      local others = external > NOISE * limit + left + UNSURE * state[of_state + HELD]
      agrees = agrees and not others
      if not tuning and (lower or others) then
        state[TUNED], tuning = 1, new_tuning(now)
      end
      if tuning and stated > 0 then
        tuning[slot + STATED] = lower and stated_now(stated, now) or 0
      end
      if tuning and observed > 0 then
        -- Never more than a window of it: it fades at the limit's rate.
        local fades = math.min(external / limit, 1) * model[WINDOW]
        tuning[slot + EXTERNAL_USE] = others and now + fades or 0
      end
    end
  end
  if agrees and tuning and tuning[FACTOR] < 1 and tuning.quiet then
    local lacks = 1 - tuning[FACTOR]
    tuning[FACTOR] = tuning[FACTOR] + lacks * math.min(1, tuning.quiet * SHOWN)
  end
  return tuning
end
