-- The other lanes. One that has not been seen for so long is as good as gone.
local FORGOTTEN = 300000000

-- The part of each limit that is left for lanes that were seen lately, of what they are guaranteed
-- and do not use: a burst of `lane` stops before it. Without a lane that for lanes in which nobody
-- waits.
local function kept_for_others(state, model, lane, lanes, limits, now)
  local kept = { 0, 0, 0, 0, most = 0 }
  for other = 1, lanes do
    local slot = lane_slot(other)
    local stands = now - state[slot + SEEN_AT] < FORGOTTEN
    if other ~= lane and stands and (lane or state[slot + WAITING] == 0) then
      local share = model[LANE_SHARES + 2 * other - 1]
      for dimension = 1, WINDOWED do
        if limits[dimension] > 0 then
          local unused = share - state[slot + USED + dimension] / limits[dimension]
          kept[dimension] = kept[dimension] + math.max(0, unused)
          kept.most = math.max(kept.most, kept[dimension])
        end
      end
    end
  end
  return kept
end
