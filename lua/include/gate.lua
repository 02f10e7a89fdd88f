-- The gate: while it is closed no call is admitted. The state holds it; the gate key says it to
-- people, "<until>|<why>". It closes for no longer than the pause's time to live, and so opens
-- again even if the worker or operator that closed it is gone.
local OPEN, PAUSED, EXHAUSTED = 0, 1, 2

local function closed_for(state, now)
  return math.max(0, state[GATE] - now)
end
