-- Counts of the provider's day, if it is limited: a packed string of the day, its requests and its
-- tokens.
local DAY_FORMAT = '<ddd'

local function counts_days(quota)
  return quota[DAY_LIMITS + 1] > 0 or quota[DAY_LIMITS + 2] > 0
end

local function load_day(keys, quota, at)
  local number = math.floor((at + quota[DAY_OFFSET]) / DAY)
  local packed = redis.call('GET', keys.day)
  if packed and #packed == struct.size(DAY_FORMAT) then
    local kept, calls, tokens = struct.unpack(DAY_FORMAT, packed)
    if kept == number then
      return { number = number, calls = calls, tokens = tokens }
    end
  end
  return { number = number, calls = 0, tokens = 0 }
end

-- Counts an amount towards the day of the call's admission.
local function add_to_day(keys, quota, admitted, calls, tokens, now)
  if not counts_days(quota) then
    return
  end
  local day = load_day(keys, quota, now)
  if math.floor((admitted + quota[DAY_OFFSET]) / DAY) == day.number then
    day.calls, day.tokens = math.max(0, day.calls + calls), math.max(0, day.tokens + tokens)
    local packed = struct.pack(DAY_FORMAT, day.number, day.calls, day.tokens)
    redis.call('SET', keys.day, packed, 'PX', DAY / MILLISECOND)
  end
end

local function day_left(quota, now)
  return DAY - (now + quota[DAY_OFFSET]) % DAY
end

-- The limit of the day that a call would exceed, and by how much; nil for none.
local function day_spent(keys, quota, need, now)
  if not counts_days(quota) then
    return nil
  end
  local day = load_day(keys, quota, now)
  local calls, tokens = quota[DAY_LIMITS + 1], quota[DAY_LIMITS + 2]
  if calls > 0 and day.calls + need[REQUESTS] > calls then
    return BY_CALLS_OF_DAY, day.calls + need[REQUESTS] - calls
  end
  if tokens > 0 and day.tokens + need[COMBINED] > tokens then
    return BY_TOKENS_OF_DAY, day.tokens + need[COMBINED] - tokens
  end
end
