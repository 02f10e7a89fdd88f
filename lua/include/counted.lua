-- What a provider counts of a call where it holds `max_tokens` and does not say what becomes of the
-- rest: what is used, the larger of input and `max_tokens`, or both. The level of a token bucket
-- tells: what it fell by, and what refilled meanwhile, is what the calls of a span counted as.
-- Six numbers behind those of starving.lua, which older programs keep as they are: when the span
-- began, the level then (0: a full bucket), what its calls are if what is used counts, if the
-- larger counts, if both count; and what was found: 0 nothing, 1 what is used, 2 the larger, 3
-- both; 4 what is used, and while a call is under way nothing of its bound is held; 5 nothing, but
-- that a refusal has shown 4 to be wrong. A span that is kept for the next level has the negative
-- of the time at which its calls were summed up. The first begins with a call that is admitted, at
-- a level of 0: it is no lower.
local function add_to_span(state, used, larger, both, now)
  local span = starving_slot(state) + STARVING
  if now and state[span + 1] == 0 then
    state[span + 1] = now
  end
  if state[span + 1] > 0 then
    for place, more in ipairs({ used, larger, both }) do
      state[span + 2 + place] = state[span + 2 + place] + more
    end
  end
end

-- Whether it was found that the provider holds nothing of a bound.
local function holds_nothing(state)
  local HOLDS_NOTHING = 4
  return state[starving_slot(state) + STARVING + COUNTED] == HOLDS_NOTHING
end
