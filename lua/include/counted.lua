-- What a provider counts of a call where it holds `max_tokens` and does not say what becomes of the
-- rest: what is used, the larger of input and `max_tokens`, or both. The level of a token bucket
-- tells: what it fell by, and what refilled meanwhile, is what the calls of a span counted as.
-- Six numbers behind those of starving.lua, which older programs keep as they are: when the span
-- began, the level then, what its calls are if both count, if the larger counts, if what is used
-- counts; and what was found: 0 nothing, 1 what is used, 2 the larger, 3 both.
local SPAN_FROM, SPAN_LEVEL, IF_BOTH, IF_LARGER, IF_USED, FOUND = 1, 2, 3, 4, 5, 6
local BY_USE, BY_BOTH = 1, 3

local function counted_slot(state)
  return starving_slot(state) + STARVING
end

local function counted_by(state)
  return state[counted_slot(state) + FOUND]
end

local function add_to_span(state, both, larger, used)
  local slot = counted_slot(state)
  if state[slot + SPAN_FROM] > 0 then
    state[slot + IF_BOTH] = state[slot + IF_BOTH] + both
    state[slot + IF_LARGER] = state[slot + IF_LARGER] + larger
    state[slot + IF_USED] = state[slot + IF_USED] + used
  end
end

-- A call was admitted.
local function count_call(state, amounts)
  local input, bound = amounts[INPUT], amounts[OUTPUT]
  add_to_span(state, input + bound, math.max(input, bound), input + bound)
end

-- A call has ended, and used this much.
local function count_used(state, reserved, input, output)
  local more, bound = input - reserved[INPUT], reserved[OUTPUT]
  local larger = math.max(input, bound) - math.max(reserved[INPUT], bound)
  add_to_span(state, more, larger, more + output - bound)
end

-- What a call counts as that is settled as `settled`.
local function counted(state, settled, reserved, input, output)
  local by = counted_by(state)
  if by == BY_USE then
    return math.min(settled, input + output)
  end
  return by == BY_BOTH and math.max(settled, input + reserved[OUTPUT]) or settled
end

-- A level that was told with the answer to a call that was admitted at `admitted`. When during the
-- call it was seen is not known, nor what became of calls under way at a span's ends: a span is
-- judged when its calls would be two minutes' limits apart. A bucket that is full loses its refill.
local function learn_counted(state, level, limit, window, admitted, now)
  local NEARLY_FULL, APART, CLEAR = 0.02, 2, 0.2
  local slot = counted_slot(state)
  local from, both = state[slot + SPAN_FROM], state[slot + IF_BOTH]
  if level < NEARLY_FULL * limit then
    state[slot + SPAN_FROM] = 0
    return
  end
  if from > 0 then
    local guesses = { state[slot + IF_USED], state[slot + IF_LARGER], both }
    if admitted < from or both - guesses[BY_USE] < APART * limit then
      return
    end
    local fell = level - state[slot + SPAN_LEVEL] + (now - from) * limit / window
    local least = CLEAR * both
    for by = 1, #guesses do
      local off = math.abs(fell - guesses[by])
      if off <= least then
        state[slot + FOUND], least = by, off
      end
    end
  end
  state[slot + SPAN_FROM], state[slot + SPAN_LEVEL] = now, level
  state[slot + IF_BOTH], state[slot + IF_LARGER], state[slot + IF_USED] = 0, 0, 0
end
