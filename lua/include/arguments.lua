-- Arguments are checked before anything is written, so that a wrong call changes nothing. Numbers
-- travel packed as little-endian doubles: as text they would cost more than the rest of a call.
local function bad_argument(index, what)
  return redis.error_reply('TIDEGATE argument ' .. index .. ' must be ' .. what)
end

-- Argument `index` as a list of at least `least` numbers from `from` to 2^53, up to which whole
-- numbers are exact; infinity too if `infinite`. Or nil and an error reply.
local function read_numbers(index, least, from, infinite)
  local EXACT, BYTES, AT_MOST = 9007199254740992, 8, 512
  local packed = ARGV[index]
  local count = #packed / BYTES
  if count < least or count > AT_MOST or count ~= math.floor(count) then
    local wanted = 'at least ' .. least .. ' packed numbers of 8 bytes each, not '
    return nil, bad_argument(index, wanted .. #packed .. ' bytes')
  end
  local list = { struct.unpack('<' .. string.rep('d', count), packed) }
  list[count + 1] = nil
  for place = 1, count do
    local number = list[place]
    if not (number >= from and (number <= EXACT or infinite and number == math.huge)) then
      local range = 'numbers from ' .. from .. ' to 2^53; number ' .. place .. ' is none'
      return nil, bad_argument(index, range)
    end
  end
  return list
end

-- The quota block, which every caller sends: window, lease, requests and tokens a day, by how much
-- the day begins before 00:00 UTC, the fingerprint of its configuration, and when its program
-- began; then each lane's share and ceiling.
local WINDOW, CALL_LEASE, DAY_LIMITS, DAY_OFFSET, OWN_FINGERPRINT, BEGAN = 1, 2, 2, 5, 6, 7
local LANE_SHARES = 7

local function read_quota(index)
  local quota, refused = read_numbers(index, LANE_SHARES + 2, 0)
  if refused then
    return nil, refused
  end
  if quota[WINDOW] < 1 then
    return nil, bad_argument(index, 'a quota whose window is at least 1 microsecond')
  end
  if (#quota - LANE_SHARES) % 2 ~= 0 then
    return nil, bad_argument(index, 'a quota with two numbers for each lane')
  end
  for place = LANE_SHARES + 1, #quota do
    if quota[place] > 1 then
      return nil, bad_argument(index, 'a quota with shares and ceilings from 0 to 1')
    end
  end
  return quota
end

-- Checks that there are `count` arguments. Argument `at` is the call, a list of at least `least`
-- numbers; the next one is the quota block. Returns both, or nil and an error reply.
local function read_arguments(count, at, least)
  if #ARGV ~= count then
    return nil, redis.error_reply('TIDEGATE wants ' .. count .. ' arguments, not ' .. #ARGV)
  end
  local call, refused = read_numbers(at, least, 0)
  if not call then
    return nil, refused
  end
  local quota, unusable = read_quota(at + 1)
  if not quota then
    return nil, unusable
  end
  return call, quota
end

-- Whether the quota block has this lane.
local function is_lane(lane, quota)
  return lane >= 1 and lane <= (#quota - LANE_SHARES) / 2 and lane == math.floor(lane)
end

-- The common keys of the scripts.
local function common_keys()
  return { ledger = KEYS[1], entries = KEYS[2], state = KEYS[3], leases = KEYS[4], day = KEYS[5] }
end
