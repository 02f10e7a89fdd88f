-- All that is kept of a model, brought up to date; or nil and an error reply.
local function load_quota(keys, model, clock_override)
  local state, now = load_state(keys, model, clock(clock_override))
  if not state then
    return nil, now
  end
  local tuning = load_tuning(keys, state, model, now)
  local burst = load_burst(keys, state, model, now)
  expire_with_credit(keys, state, model, burst, now)
  return { keys = keys, model = model, now = now, state = state, tuning = tuning, burst = burst }
end

local function save_quota(quota)
  save_tuning(quota.keys, quota.tuning)
  save_burst(quota.keys, quota.burst, quota.model, quota.now)
  save_state(quota.keys, quota.state, quota.model, quota.now)
end
