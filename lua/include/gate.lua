-- The gate: while its key lives and its time lies ahead, nobody is admitted. The key holds "<until>|<reason>"; deleting
-- it by hand opens the gate. It lives no longer than the pause's time to live, whoever closed it and whatever became of them.
local function gate_state(gate_key, now)
  local text = redis.call('GET', gate_key)
  if not text then
    return 0, ''
  end
  local bar = string.find(text, '|', 1, true)
  local till = tonumber(bar and string.sub(text, 1, bar - 1) or text) or 0
  if till <= now then
    return 0, ''
  end
  return till - now, bar and string.sub(text, bar + 1) or ''
end

local function shift_queues(state, by)
  for lane = 1, state[LANES] do
    shift_queue(state, lane, by)
  end
end

-- Closes the gate until now + pause, never earlier than it was closed until before. Every queue moves by what was added.
local function close_gate(gate_key, state, now, pause, ttl, reason)
  local before = gate_state(gate_key, now)
  pause = math.min(pause, ttl)
  if pause > before then
    redis.call('SET', gate_key, string.format('%.0f|', now + pause) .. reason, 'PX', math.ceil(pause / 1000))
    shift_queues(state, pause - before)
    return pause
  end
  return before
end

local function open_gate(gate_key, state, now)
  local before = gate_state(gate_key, now)
  redis.call('DEL', gate_key)
  shift_queues(state, -before)
end
