-- Whether the caller must write a plan: there is none, or the one in force has another fingerprint
-- of configuration and policy. Another fingerprint replaces it at most once a minute, for a newer
-- program, or when for a minute no program with the plan's own has had the policy's task.
local function wants_plan(state, quota, now)
  if state[VERSION] == 0 then
    return true
  end
  local newer = quota[BEGAN] > state[BORN]
  local gone = quota[BEGAN] > 0 and now >= state[HANDED] + MINUTE
  local other = quota[OWN_FINGERPRINT] ~= state[FINGERPRINT]
  return other and (newer or gone) and now >= state[REPLACED] + MINUTE
end
