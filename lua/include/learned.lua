-- The expected use of a template's next call, from past calls: real over estimated input, and the
-- mean output weighted by the call's latency. A plain mean under-reserves 1.7 times, because the
-- calls in flight are longer than those that have completed. Packed: four sums, each fading by 1 %
-- a call (real and estimated input, output × weight, weight), and the cached input that the
-- provider does not count.
local LEARNED_FORMAT = '<ddddd'

local function load_learned(learned_key)
  local packed = redis.call('GET', learned_key)
  if packed and #packed == struct.size(LEARNED_FORMAT) then
    return { struct.unpack(LEARNED_FORMAT, packed) }
  end
  return { 0, 0, 0, 0, 0 }
end

-- Three integers for a reply: the input ratio in millionths, the expected output in tokens, and the
-- cached input in tokens; 0 while nothing is known.
local function expectation(learned)
  local input, estimated, output, weight, cached = unpack(learned)
  if estimated <= 0 then
    return 0, 0, 0
  end
  return math.ceil(input / estimated * MILLION), math.ceil(output / weight), math.floor(cached)
end

-- Learns from a settled call. The expectation of the first call counts as one more call if it was
-- above the real output, because the shortest answers come first. The learned cached input falls at
-- once when a call gets less, and grows by halves. `cached` is nil if it is unknown.
local function learn(learned_key, expected, estimated_input, input, output, cached, latency)
  local learned, weight = load_learned(learned_key), math.max(latency, 1)
  if learned[4] == 0 then
    learned[3], learned[4] = math.max(output, expected) * weight, weight
  end
  for index, seen in ipairs({ input, estimated_input, output * weight, weight }) do
    learned[index] = learned[index] * FADE + seen
  end
  if cached then
    local known = learned[5]
    learned[5] = math.min(cached, known + HALF * math.max(0, cached - known))
  end
  local packed = struct.pack(LEARNED_FORMAT, unpack(learned, 1, 5))
  redis.call('SET', learned_key, packed, 'PX', DAY / MILLISECOND)
  return learned
end
