-- What makes a model's limits differ from the configured ones, and what is counted by the day. A
-- key of its own, because most calls of most models need none of it; the state says whether it
-- counts. Packed doubles: 1 factor on every limit, 2 time up to which its recovery has been
-- reckoned, 3 cap on calls in flight (0: none), 4 calls in flight when the cap was set, 5 when, 6
-- day, 7 requests and 8 tokens of that day, then for each of five dimensions: until when use by
-- others on the same account is in the window, limit set by an operator (0: none), lower limit that
-- the provider states (0: none): whole tokens, and as the fraction when it was stated, in minutes
-- of the clock modulo 65,536, which is longer than the key lives
local FACTOR, RECOVERED_TO, CAP, PEAK, CAPPED_AT = 1, 2, 3, 4, 5
local DAY, DAY_REQUESTS, DAY_TOKENS, TUNING = 6, 7, 8, 8
local EXTERNAL_USE, ORDERED, STATED, PER_TUNED = 1, 2, 3, 3
local FULL_DAY = 86400000000
local MINUTES_KEPT = 65536

local function tuned_slot(dimension)
  return TUNING + (dimension - 1) * PER_TUNED
end

-- What a provider states holds for ten minutes after it was last said: in use it is said with every
-- answer, and a limit that lets nothing go would never be heard of again.
local function minute_of(now)
  return math.floor(now / 60000000) % MINUTES_KEPT
end

local function new_tuning(now)
  local tuning = { 1, now, 0, 0, 0, 0, 0, 0 }
  for slot = TUNING + 1, TUNING + IN_FLIGHT * PER_TUNED do
    tuning[slot] = 0
  end
  return tuning
end

-- nil while every limit is as configured. After a quiet minute 1 % a minute of what refusals took
-- comes back, and `quiet` is the time that has been reckoned just now; after five minutes without
-- overload the cap goes.
local function load_tuning(keys, state, model, now)
  local RECOVERY, CAP_FORGOTTEN = 0.00000000016666666666666667, 300000000
  local STATED_FOR = 10
  local by_day = model[DAY_REQUEST_LIMIT] > 0 or model[DAY_TOKEN_LIMIT] > 0
  if state[TUNED] == 0 and not by_day then
    return nil
  end
  local count = TUNING + IN_FLIGHT * PER_TUNED
  local packed = redis.call('GET', keys.tuning)
  local tuning
  if packed and #packed == count * 8 then
    tuning = { struct.unpack('<' .. string.rep('d', count), packed) }
    tuning[count + 1] = nil
  else
    tuning = new_tuning(now)
  end
  state[TUNED] = 1
  -- Times that lie ahead farther than they are ever set come from a clock that has been set back.
  tuning[RECOVERED_TO] = math.min(tuning[RECOVERED_TO], now + 60000000)
  tuning[CAPPED_AT] = math.min(tuning[CAPPED_AT], now)
  for dimension = 1, WINDOWED do
    local slot = tuned_slot(dimension)
    tuning[slot + EXTERNAL_USE] = math.min(tuning[slot + EXTERNAL_USE], now + model[WINDOW])
    local said = tuning[slot + STATED] % 1 * MINUTES_KEPT
    if tuning[slot + STATED] > 0 and (minute_of(now) - said) % MINUTES_KEPT > STATED_FOR then
      tuning[slot + STATED] = 0
    end
  end
  if tuning[FACTOR] < 1 and now > tuning[RECOVERED_TO] then
    tuning.quiet = now - tuning[RECOVERED_TO]
    tuning[FACTOR] = math.min(1, tuning[FACTOR] + tuning.quiet * RECOVERY)
    tuning[RECOVERED_TO] = now
  end
  if tuning[CAP] > 0 and now - tuning[CAPPED_AT] > CAP_FORGOTTEN then
    tuning[CAP] = 0
  end
  local day = math.floor((now + model[DAY_OFFSET]) / FULL_DAY)
  if day ~= tuning[DAY] then
    tuning[DAY], tuning[DAY_REQUESTS], tuning[DAY_TOKENS] = day, 0, 0
  end
  return tuning
end

local function save_tuning(keys, tuning)
  local TUNING_TTL = 2592000000
  if tuning then
    local packed = struct.pack('<' .. string.rep('d', #tuning), unpack(tuning))
    redis.call('SET', keys.tuning, packed, 'PX', TUNING_TTL)
  end
end

-- The limits in force of all five dimensions (0: none), and the limits that waiting could restore:
-- an operator's before the configured, the provider's own if lower, times the factor; and the cap
-- on calls in flight.
local function limits_now(model, tuning)
  local limits = { unpack(model, LIMITS + 1, LIMITS + WINDOWED) }
  limits[IN_FLIGHT] = model[CONCURRENT]
  if not tuning then
    return limits, limits
  end
  local whole = {}
  for dimension = 1, IN_FLIGHT do
    local slot = tuned_slot(dimension)
    local limit = limits[dimension]
    if tuning[slot + ORDERED] > 0 then
      limit = tuning[slot + ORDERED]
    end
    if limit > 0 and tuning[slot + STATED] > 0 then
      limit = math.min(limit, math.floor(tuning[slot + STATED]))
    end
    whole[dimension] = limit
    limits[dimension] = dimension <= WINDOWED and limit * tuning[FACTOR] or limit
  end
  if tuning[CAP] > 0 and (limits[IN_FLIGHT] == 0 or tuning[CAP] < limits[IN_FLIGHT]) then
    limits[IN_FLIGHT] = math.floor(tuning[CAP])
  end
  return limits, whole
end

-- What others on the same account have in the window by now: it fades at the limit's rate.
local function external_use(tuning, dimension, limit, window, now)
  local until_when = tuning and tuning[tuned_slot(dimension) + EXTERNAL_USE] or 0
  return math.max(0, until_when - now) * limit / window
end

local function add_to_day(tuning, model, admitted, requests, tokens)
  if tuning and math.floor((admitted + model[DAY_OFFSET]) / FULL_DAY) == tuning[DAY] then
    tuning[DAY_REQUESTS] = math.max(0, tuning[DAY_REQUESTS] + requests)
    tuning[DAY_TOKENS] = math.max(0, tuning[DAY_TOKENS] + tokens)
  end
end
