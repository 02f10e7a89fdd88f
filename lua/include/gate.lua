-- The gate. While it is closed no call is admitted. The state holds it; the gate key shows it to
-- people as "<until>|<reason>". It closes for the pause's time to live at most, so it opens again
-- even if the worker or operator that closed it is gone. After a refusal one probe call goes first.

-- Closes the gate, never for less time than before. Returns how long it is closed.
local function close_gate(keys, state, now, pause, longest, closed, reason)
  local until_when = now + math.min(pause, longest, MONTH)
  if until_when > state[GATE] or state[CLOSED] == OPEN then
    -- The state must live as long as its gate is closed.
    state[GATE], state[CLOSED], state[PROBE], state[KEPT] = until_when, closed, 0, 0
    local text = string.format('%.0f|', until_when) .. reason
    local life = math.max(1, math.ceil((until_when - now) / MILLISECOND))
    redis.call('SET', keys.gate, text, 'PX', life)
  end
  return closed_for(state, now)
end

local function open_gate(state)
  state[GATE], state[CLOSED], state[PROBE] = 0, OPEN, 0
end

-- How long all calls are held, and by what: the gate or the probe.
local function closed_hold(state, now)
  if state[CLOSED] == OPEN then
    return 0
  end
  if now < state[GATE] then
    return state[GATE] - now, BY_GATE
  end
  local judged = state[PROBE] > 0 and state[PROBE] + QUIET or math.huge
  if state[CLOSED] ~= REFUSED or now >= judged then
    open_gate(state)
    return 0
  end
  return judged < math.huge and judged - now or 0, BY_PROBE
end
