-- Queues move as a whole.

-- One number moves a lane's whole queue, and with it the time until which its head is blocked.
local function shift_queue(state, lane, by)
  local slot = lane_slot(lane)
  state[slot + SHIFT] = state[slot + SHIFT] + by
  state[slot + HEAD] = state[slot + HEAD] + by
end

local function shift_queues(state, by)
  for lane = 1, state[LANES] do
    shift_queue(state, lane, by)
  end
end
