-- A call that is larger than what its lane is guaranteed needs what the others leave, and in a
-- model that is always full they leave nothing: each of their small calls takes what has just
-- become free. Of such calls that are due and find no room the largest is noted, with its lane,
-- since when, when it last asked, and which part of a limit it needs. After some windows the
-- other lanes make room: first those that borrow, then all. Within a window it then fits.
local STARVING_LANE, SINCE, ASKED_AT, NEED = 1, 2, 3, 4

local function need_of(asked)
  local need = 0
  for dimension = 1, WINDOWED do
    if asked.limits[dimension] > 0 then
      need = math.max(need, asked.amounts[dimension] / asked.limits[dimension])
    end
  end
  return need
end

local function is_noted(asked, slot)
  local GIVES_UP = 3
  local quota, state = asked.quota, asked.quota.state
  return state[slot + STARVING_LANE] > 0
    and quota.now - state[slot + ASKED_AT] < GIVES_UP * quota.model[WINDOW]
end

-- A call was due and found no room.
local function note_starving(asked)
  local state, now = asked.quota.state, asked.quota.now
  local slot, need = starving_slot(state), need_of(asked)
  local same = state[slot + STARVING_LANE] == asked.lane
  local noted = is_noted(asked, slot)
  if need <= asked.quota.model[LANE_SHARES + 2 * asked.lane - 1] then
    return
  end
  if not noted or (not same and need > state[slot + NEED]) then
    state[slot + STARVING_LANE], state[slot + SINCE], state[slot + NEED] = asked.lane, now, need
    same = true
  end
  if same then
    state[slot + ASKED_AT] = now
  end
end

-- A call of the lane was admitted.
local function end_starving(state, lane)
  local slot = starving_slot(state)
  if state[slot + STARVING_LANE] == lane then
    state[slot + STARVING_LANE] = 0
  end
end

-- How long a call waits that would take what one of another lane has waited for so long.
local function make_room(asked, obstacle)
  local BORROWERS_AFTER, ALL_AFTER, ASKS_AGAIN = 3, 5, 0.125
  local quota, slot = asked.quota, starving_slot(asked.quota.state)
  local state, model = quota.state, quota.model
  if not is_noted(asked, slot) or state[slot + STARVING_LANE] == asked.lane then
    return
  end
  local waited, borrows = (quota.now - state[slot + SINCE]) / model[WINDOW], false
  for dimension = 1, WINDOWED do
    local guaranteed = model[LANE_SHARES + 2 * asked.lane - 1] * asked.limits[dimension]
    local used = state[asked.lane_at + USED + dimension] + asked.amounts[dimension]
    borrows = borrows or (asked.limits[dimension] > 0 and used > guaranteed)
  end
  if waited >= (borrows and BORROWERS_AFTER or ALL_AFTER) then
    obstruct(obstacle, ASKS_AGAIN * model[WINDOW], BY_TURN, 0)
  end
end
