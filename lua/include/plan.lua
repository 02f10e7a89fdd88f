-- Whose plan is in force: one fingerprint of configuration and policy. Another one takes its place
-- at most once a minute, and then the newer program's.
local function wants_plan(state, quota, now)
  if state[VERSION] == 0 then
    return true
  end
  local newer = quota[BEGAN] > state[BORN]
  local other = quota[OWN_FINGERPRINT] ~= state[FINGERPRINT]
  return other and newer and now >= state[REPLACED] + MINUTE
end
