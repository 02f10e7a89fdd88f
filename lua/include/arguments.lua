-- Arguments are checked before anything is written, so that a bad call changes nothing. Numbers
-- travel packed, as little-endian doubles: as text they would cost more than all the rest of a
-- call.
local function bad_argument(index, what)
  return redis.error_reply('TIDEGATE argument ' .. index .. ' must be ' .. what)
end

-- Argument `index` as a list of at least `least` numbers from 0 to 2^53, up to which whole ones are
-- exact; or nil and an error reply.
local function numbers(index, least)
  local MOST = 9007199254740992
  local packed = ARGV[index]
  local count = #packed / 8
  if count < least or count > 512 or count ~= math.floor(count) then
    local wanted = 'at least ' .. least .. ' packed numbers of 8 bytes each, not '
    return nil, bad_argument(index, wanted .. #packed .. ' bytes')
  end
  local list = { struct.unpack('<' .. string.rep('d', count), packed) }
  list[count + 1] = nil
  for place = 1, count do
    local number = list[place]
    if not (number >= 0 and number <= MOST) then
      return nil, bad_argument(index, 'numbers from 0 to 2^53; number ' .. place .. ' is none')
    end
  end
  return list
end

-- A model: window, tolerance of the pace clock, lease, limits of a window (requests, input, output,
-- combined), calls at once, requests and tokens a day, by how much the day begins before 00:00 UTC,
-- the most that the tolerance may grow to (0: it does not), 1 if the limits are known to be those
-- of token buckets as deep as a window; then each lane's share and ceiling.
local WINDOW, TOLERANCE, LEASE, LIMITS, CONCURRENT = 1, 2, 3, 3, 8
local DAY_REQUEST_LIMIT, DAY_TOKEN_LIMIT, DAY_OFFSET = 9, 10, 11
local BURST_MAX, BUCKET, LANE_SHARES = 12, 13, 13

local function read_model(index)
  local model, refused = numbers(index, LANE_SHARES + 2)
  if refused then
    return nil, refused
  end
  if model[WINDOW] < 1 then
    return nil, bad_argument(index, 'a model whose window is at least 1 microsecond')
  end
  if (#model - LANE_SHARES) % 2 ~= 0 then
    return nil, bad_argument(index, 'a model with two numbers for each lane')
  end
  -- What is divided by: a part of one would make a turn that never comes.
  for place = LIMITS + 1, DAY_TOKEN_LIMIT do
    if model[place] > 0 and model[place] < 1 then
      return nil, bad_argument(index, 'a model whose limits are 0 or at least 1')
    end
  end
  for place = LANE_SHARES + 1, #model do
    if model[place] > 1 then
      return nil, bad_argument(index, 'a model with shares and ceilings from 0 to 1')
    end
  end
  return model
end

-- Checks that there are `count` arguments, of which number `at` is the call, a list of at least
-- `least` numbers, and the next the model. Both, or nil and an error reply.
local function read_arguments(count, at, least)
  if #ARGV ~= count then
    return nil, redis.error_reply('TIDEGATE wants ' .. count .. ' arguments, not ' .. #ARGV)
  end
  local call, refused = numbers(at, least)
  if not call then
    return nil, refused
  end
  local model, unusable = read_model(at + 1)
  if not model then
    return nil, unusable
  end
  return call, model
end

-- The keys that every script about a model begins with.
local function common_keys()
  return {
    ledger = KEYS[1],
    entries = KEYS[2],
    state = KEYS[3],
    leases = KEYS[4],
    tuning = KEYS[5],
  }
end
