-- Whether the caller must write a plan: there is none, or the one in force has another fingerprint
-- of configuration and policy. Another fingerprint replaces it at most once a minute, and only for
-- a newer program.
local function wants_plan(state, quota, now)
  if state[VERSION] == 0 then
    return true
  end
  local newer = quota[BEGAN] > state[BORN]
  local other = quota[OWN_FINGERPRINT] ~= state[FINGERPRINT]
  return other and newer and now >= state[REPLACED] + MINUTE
end
