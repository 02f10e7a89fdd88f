-- What past calls teach about the next: real over estimated input, and the mean output weighted by
-- the call's latency. A plain mean under-reserves 1.7 times, because what is in flight is longer
-- than what has completed. Four sums, each fading by 1 % a call, and the number of calls.

local function load_learned(learned_key)
  local packed = redis.call('GET', learned_key)
  if packed and #packed == 40 then
    local learned = { struct.unpack('<ddddd', packed) }
    learned[6] = nil
    return learned
  end
  return { 0, 0, 0, 0, 0 }
end

-- Two integers for a reply: the input ratio in millionths and the expected output in tokens, 0
-- while too little is known.
local function expectation(learned)
  local ENOUGH = 3
  if learned[5] < ENOUGH or learned[2] <= 0 or learned[4] <= 0 then
    return 0, 0
  end
  return math.ceil(learned[1] / learned[2] * 1000000), math.ceil(learned[3] / learned[4])
end

local function learn(learned_key, estimated_input, input, output, latency)
  local DECAY, A_DAY = 0.99, 86400000
  local learned = load_learned(learned_key)
  local weight = math.max(latency, 1)
  local seen = { input, estimated_input, output * weight, weight }
  for index = 1, 4 do
    learned[index] = learned[index] * DECAY + seen[index]
  end
  learned[5] = learned[5] + 1
  redis.call('SET', learned_key, struct.pack('<ddddd', unpack(learned)), 'PX', A_DAY)
  return learned
end
