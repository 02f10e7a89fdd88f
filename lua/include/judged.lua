-- What was found of how a provider counts, see counted.lua, and how it is found.
local function counted_by(state)
  return state[starving_slot(state) + STARVING + COUNTED]
end

-- A call has ended, and used this much: what it counts as that would be settled as `settled`.
local function judged(state, settled, reserved, input, output)
  local BY_USE, BY_BOTH = 1, 3
  local more, bound, by = input - reserved[INPUT], reserved[OUTPUT], counted_by(state)
  local larger = math.max(input, bound) - math.max(reserved[INPUT], bound)
  add_to_span(state, more + output - bound, larger, more)
  if by == BY_USE then
    return math.min(settled, input + output)
  end
  return by == BY_BOTH and math.max(settled, input + bound) or settled
end

-- A level that was told with the answer to a call that was admitted at `admitted`. When during the
-- call it was seen is not known, nor what became of calls under way at a span's ends: a span is
-- judged when its calls would be two minutes' limits apart. A bucket that is full loses its refill.
local function judge(state, level, limit, window, admitted, now)
  local NEARLY_FULL, APART, CLEAR = 0.02, 2, 0.2
  local span, found = starving_slot(state) + STARVING, counted_by(state)
  local from, before, used, larger, both = unpack(state, span + 1, span + 5)
  if level < NEARLY_FULL * limit then
    state[span + 1] = 0
    return
  end
  if from > 0 then
    if admitted < from or both - used < APART * limit then
      return
    end
    local fell, least = level - before + (now - from) * limit / window, CLEAR * both
    for by, guess in ipairs({ used, larger, both }) do
      local off = math.abs(fell - guess)
      if off <= least then
        found, least = by, off
      end
    end
  end
  for place, number in ipairs({ now, level, 0, 0, 0, found }) do
    state[span + place] = number
  end
end
