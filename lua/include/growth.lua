-- A window fuller than this says nothing about bursts.
local TOO_FULL = 0.9

-- Slow start: grows by 40 % a second (it doubles in two) while the pace is as far ahead as it may
-- be, but for what is kept for other lanes.
local function grow(burst, state, model, limits, credit, kept, now)
  local GROWTH, GROWS_AT_MOST = 0.0000004, 1000000
  local elapsed = math.min(now - burst.grew_at, GROWS_AT_MOST)
  if pace_ahead(state, limits, now) < burst.allowance * (1 - kept.most) then
    return
  end
  burst.grew_at = now
  if now >= burst.steady_until and fullness(state, limits, credit) < TOO_FULL then
    local to = burst.allowance * (1 + elapsed * GROWTH)
    -- Until a call has come back ten seconds' worth is the most.
    local unproven = state[LATENCY] == 0 and UNPROVEN or math.huge
    widen(burst, state, math.min(to, unproven, most_allowed(burst, model, now)))
  end
end
