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
  if by == BY_USE or holds_nothing(state) then
    return math.min(settled, input + output)
  end
  return by == BY_BOTH and math.max(settled, input + bound) or settled
end

-- A level that was told with the answer to a call that was admitted at `admitted`. When during the
-- call it was seen is not known, nor what became of calls under way at a span's ends: a span is
-- judged when its calls would be two minutes' limits apart. A bucket that is full loses its refill,
-- so of a span that begins with one it is known only what the level must be at least if bounds
-- count. Once that lies clearly above what is told, it is kept for a call that comes after all of
-- these: if that is told as little, bounds do not count. A level below a full bucket's that is
-- about what it must be at least says that bounds count: a span begins with it.
local function judge(state, level, limit, window, admitted, now)
  local NEARLY_FULL, APART, CLEAR, CALLS, WHAT_IS_USED = 0.02, 2, 0.2, 1.5, 1
  if holds_nothing(state) then
    -- Bounds are not reserved any more.
    return
  end
  local span, found, rate = starving_slot(state) + STARVING, counted_by(state), limit / window
  local from, before, used, larger, both = unpack(state, span + 1, span + 5)
  local kept, refilled = from < 0, (now - math.abs(from)) * rate
  local least, next_span = larger - refilled, { now, 0, 0, 0, 0 }
  local about = level
  if level >= NEARLY_FULL * limit then
    next_span[2], about = level, level + NEARLY_FULL * limit
  end
  if kept and admitted <= TOGETHER - from then
    return
  elseif kept and least > level + CLEAR * limit then
    found = WHAT_IS_USED
  elseif from ~= 0 and before == 0 and least > about then
    local clear = CLEAR * limit + CALLS * state[LATENCY] * rate
    local keep = not kept and least > level + clear
    next_span = { keep and -now or now, 0, used - refilled, least, both - refilled }
  elseif from > 0 and before > 0 and next_span[2] > 0 then
    if admitted < from or both - used < APART * limit then
      return
    end
    local fell, off_by = level - before + refilled, CLEAR * both
    for by, guess in ipairs({ used, larger, both }) do
      local off = math.abs(fell - guess)
      if off <= off_by then
        found, off_by = by, off
      end
    end
  end
  next_span[6] = found
  for place, number in ipairs(next_span) do
    state[span + place] = number
  end
end

-- Whether a provider holds bounds while calls are under way. Of calls that were admitted together
-- and took long enough to be under way together, the one that came last was told of all that the
-- others hold: once the most that such calls were told is clearly below the bounds of those that
-- have ended, less what refills while they come, calls may be reserved by what they are expected to
-- write. Two numbers behind adapt.lua's: which calls these are, and what was reserved for them.
local function learn_unheld(state, burst, reserved, limit, window, admitted, now)
  local CLEARLY_BELOW, WORTH_JUDGING, ARRIVED, UNHELD = 0.5, 0.1, 3000000, 4
  local slot = refusals_slot(state)
  if counted_by(state) >= UNHELD or limit == 0 or now - admitted < 2 * TOGETHER then
    return
  end
  if state[slot + 1] ~= burst.told_at then
    state[slot + 1], state[slot + 2] = burst.told_at, 0
  end
  local bounds = state[slot + 2] + reserved
  state[slot + 2] = bounds
  local held = bounds - ARRIVED * limit / window
  if bounds > WORTH_JUDGING * limit and burst.told[COMBINED] < CLEARLY_BELOW * held then
    state[starving_slot(state) + STARVING + COUNTED] = UNHELD
  end
end
