-- Closing the gate; the queues move with it.

-- Closes the gate until now + pause, never earlier than it was closed until before. Every queue
-- moves by what was added. When a refusal closed it, one call goes first on reopening.
local function close_gate(keys, state, now, pause, ttl, why, reason, canary)
  local before = closed_for(state, now)
  -- The longest that any provider resets after is a month.
  local A_MONTH = 2678400000000
  pause = math.min(pause, ttl, A_MONTH)
  if canary then
    state[CANARY] = WANTED
  end
  if pause > before then
    -- The state must live as long as its gate is closed.
    state[GATE], state[CLOSED_FOR], state[KEPT] = now + pause, why, 0
    local text = string.format('%.0f|', now + pause) .. reason
    redis.call('SET', keys.gate, text, 'PX', math.ceil(pause / 1000))
    shift_queues(state, pause - before)
    return pause
  end
  return before
end
