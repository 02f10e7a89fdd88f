-- What past calls teach about the next: real over estimated input, and the mean output weighted by
-- the call's latency. A plain mean under-reserves 1.7 times, because what is in flight is longer
-- than what has completed. Four sums, each fading by 1 % a call, and the number of calls: as its
-- fraction the minute (see tuning.lua) since which nothing of a cache has been seen. Then, if there
-- is any, input that a cache gave and the provider did not count, and when that was last.

local function load_learned(learned_key)
  local packed = redis.call('GET', learned_key)
  local learned = { 0, 0, 0, 0, 0 }
  if packed and (#packed == 40 or #packed == 56) then
    local count = #packed / 8
    learned = { struct.unpack('<' .. string.rep('d', count), packed) }
    learned[count + 1] = nil
  end
  learned[6], learned[7] = learned[6] or 0, learned[7] or 0
  return learned
end

-- Caches forget what nobody reads for five minutes.
local CACHE_LIVES = 240000000

-- Three integers for a reply: the input ratio in millionths, the expected output in tokens, and the
-- input tokens that a cache gives; 0 while too little is known.
local function expectation(learned, now)
  local ENOUGH = 3
  if learned[5] < ENOUGH or learned[2] <= 0 or learned[4] <= 0 then
    return 0, 0, 0
  end
  local cached = now - learned[7] < CACHE_LIVES and math.floor(learned[6]) or 0
  return math.ceil(learned[1] / learned[2] * 1000000), math.ceil(learned[3] / learned[4]), cached
end

-- What a cache gives is taken back at once when a call gets less, and comes back by halves.
-- `cached` is nil where it is not known.
local function learn(learned_key, estimated_input, input, output, cached, latency, now)
  local DECAY, LEARNED_TTL, HALF = 0.99, 86400000, 0.5
  local learned = load_learned(learned_key)
  local weight = math.max(latency, 1)
  local seen = { input, estimated_input, output * weight, weight }
  for index = 1, 4 do
    learned[index] = learned[index] * DECAY + seen[index]
  end
  if learned[5] == 0 or (cached == 0 and learned[6] > 0) then
    learned[5] = math.floor(learned[5]) + minute_of(now) / MINUTES_KEPT
  end
  learned[5] = learned[5] + 1
  if cached then
    learned[6] = math.min(cached, learned[6] + HALF * math.max(0, cached - learned[6]))
    learned[7] = cached > 0 and now or learned[7]
  end
  local count = learned[6] > 0 and 7 or 5
  local packed = struct.pack('<' .. string.rep('d', count), unpack(learned, 1, count))
  redis.call('SET', learned_key, packed, 'PX', LEARNED_TTL)
  return learned
end
