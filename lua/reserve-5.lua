--[[
Reserves what one provider call will use, or says when to come back. All or nothing over every dimension.

Guarantees
  * In any window the admitted amounts stay within each limit, and no faster than the pace clock allows.
  * The same id is admitted once: asking again after a lost reply answers as the first time and costs nothing.
  * A refusal changes no amount. It returns a ticket: coming back with it keeps the caller's turn in its lane.
  * First come, first served within a lane; a newcomer never overtakes someone whose turn has not come yet,
    except into capacity that nobody has used for 300 ms.

Keys, all with the hash tag {provider:model}
  KEYS[1] ledger   sorted set, reservation id by time of admission
  KEYS[2] entries  hash, reservation id to its packed entry
  KEYS[3] state    packed doubles, see include/state.lua
  KEYS[4] gate     "<until>|<reason>" while closed
  KEYS[5] learned  packed doubles, see include/learned.lua

Arguments (times in microseconds)
  ARGV[1]       reservation id, unique to one attempt
  ARGV[2]       lane, counted from 1
  ARGV[3]       ticket: epoch, 0 without a ticket
  ARGV[4]       ticket: position, 0 without a ticket
  ARGV[5]       window
  ARGV[6]       tolerance of the pace clock
  ARGV[7..10]   amounts to reserve: requests, input, output, combined tokens
  ARGV[11..14]  limits of a window in the same order, 0 for none
  ARGV[15]      clock for tests, 0 for the server's
  ARGV[16..]    each lane's guaranteed share and ceiling, as parts of 1

Reply: integers
  1 outcome      1 granted, 2 wait, 3 paused, 4 never fits
  2 wait         microseconds until it is worth asking again (rounded up)
  3 dimension    the one that binds: 1 requests, 2 input, 3 output, 4 combined; 5 lane's turn; 0 none
  4 deficit      by how much that dimension is over; for 4 its capacity
  5 epoch        of the ticket
  6 position     of the ticket
  7 ratio        real over estimated input in millionths, 0 unknown
  8 output       expected output tokens, 0 unknown
]]
local GRANTED, WAIT, PAUSED, NEVER = 1, 2, 3, 4
local TURN, IDLE, SPACING = 5, 300000, 0.85
local ledger_key, entries_key, state_key, gate_key, learned_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local lanes = (#ARGV - 15) / 2
if lanes < 1 or lanes ~= math.floor(lanes) then
  return redis.error_reply('TIDEGATE wants 15 arguments and two for each lane, not ' .. #ARGV)
end
local argument = {}
local refused = read_numbers(argument, 2, #ARGV)
if refused then
  return refused
end
local id, lane, epoch, position, window, tolerance = ARGV[1], argument[2], argument[3], argument[4], argument[5], argument[6]
if id == '' then
  return bad_argument(1, 'a reservation id')
end
if lane < 1 or lane > lanes or lane ~= math.floor(lane) then
  return bad_argument(2, 'a lane from 1 to ' .. lanes)
end
if window < 1 then
  return bad_argument(5, 'a window of at least 1 microsecond')
end
local amounts, limits, shares = four(argument, 7), four(argument, 11), {}
for index = 1, lanes do
  shares[index] = { argument[14 + 2 * index], argument[15 + 2 * index] }
end

-- Read.
local state, now = load_state(state_key, ledger_key, entries_key, lanes, clock(argument[15]))
expire(ledger_key, entries_key, state, now, window)
local ratio, expected_output = expectation(load_learned(learned_key))
local lane_at = lane_slot(lane)
state[lane_at + SEEN_AT] = now

local function reply(outcome, wait, dimension, deficit, ticket)
  save_state(state_key, state, window)
  return { outcome, math.ceil(wait), dimension, math.ceil(deficit), ticket and state[EPOCH] or 0, ticket and math.floor(ticket) or 0, ratio, expected_output }
end

if redis.call('HEXISTS', entries_key, id) == 1 then
  return reply(GRANTED, 0, 0, 0)
end
local capacity = {}
for dimension = 1, DIMENSIONS do
  local limit = limits[dimension]
  if limit > 0 then
    local ceiling = shares[lane][2] * limit
    if amounts[dimension] > ceiling then
      return reply(NEVER, 0, dimension, ceiling)
    end
    capacity[dimension] = lane_capacity(state, shares, lane, dimension, limit, now)
    -- A document larger than what the others leave still fits when they are quiet, and must not wait for ever.
    capacity[dimension] = math.max(capacity[dimension], amounts[dimension])
  end
end
local has_ticket = epoch == state[EPOCH] and position > 0
local pause = gate_state(gate_key, now)
if pause > 0 then
  return reply(PAUSED, pause, 0, 0, has_ticket and position or nil)
end

-- Decide. A turn is a position in the lane's virtual time; `shift` moves every turn of the lane at once.
local shift = state[lane_at + SHIFT]
if not has_ticket then
  position = math.max(now - shift, state[lane_at + TAIL])
end
local due = position + shift
local pace_limit = now + lane_tolerance(state, shares, lane, limits, tolerance, now)
local wait, binding, deficit = 0, 0, 0
local idle = state[lane_at + HEAD] < now - IDLE
local total_over, lane_over, crowded = { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, false
local turn = 0
for dimension = 1, DIMENSIONS do
  local limit, amount = limits[dimension], amounts[dimension]
  if limit > 0 and amount > 0 then
    local slot = dimension_slot(dimension)
    turn = math.max(turn, amount * window / capacity[dimension])
    local ahead = state[slot + PACE] - pace_limit
    if ahead > wait then
      wait, binding, deficit = ahead, dimension, ahead * limit / window
    end
    idle = idle and state[slot + PACE] < now - IDLE
    total_over[dimension] = math.max(0, state[slot + TOTAL] + amount - limit)
    lane_over[dimension] = math.max(0, state[lane_at + USED + dimension] + amount - capacity[dimension])
    crowded = crowded or total_over[dimension] > 0 or lane_over[dimension] > 0
  end
end
local fits = wait <= 0 and not crowded
if fits and (due <= now or idle) then
  -- Write: admitted. An idle pace and no blocked head mean that those with earlier turns are late or gone: the queue
  -- moves up.
  if due > now then
    state[lane_at + SHIFT] = now - position
  end
  redis.call('ZADD', ledger_key, string.format('%.0f', now), id)
  redis.call('HSET', entries_key, id, pack_entry(now, lane, 0, amounts))
  keep_alive(ledger_key, entries_key, state, now, window)
  add_to_totals(state, lane, amounts, 1)
  for dimension = 1, DIMENSIONS do
    if limits[dimension] > 0 then
      local slot = dimension_slot(dimension) + PACE
      state[slot] = math.max(state[slot], now) + amounts[dimension] * window / limits[dimension]
    end
  end
  state[lane_at + IN_FLIGHT] = state[lane_at + IN_FLIGHT] + 1
  if state[OLDEST] == 0 then
    state[OLDEST] = now
  end
  return reply(GRANTED, 0, 0, 0)
end

-- Write: a turn. Whoever is due and blocked holds the lane: nobody behind goes first, so large documents do not starve.
state[lane_at + REFUSED_AT] = now
if due > now then
  wait, binding, deficit = due - now, TURN, 0
else
  if crowded then
    local over_total, over_lane = { unpack(total_over) }, { unpack(lane_over) }
    local room = room_at(ledger_key, entries_key, lane, total_over, lane_over, limits, now, window)
    if room - now > wait then
      wait = room - now
      for dimension = 1, DIMENSIONS do
        local over = math.max(over_total[dimension], over_lane[dimension])
        if over > 0 then
          binding, deficit = dimension, over
        end
      end
    end
  end
  wait = math.max(wait, 1000)
  state[lane_at + SHIFT] = math.max(shift, now + wait - position)
  state[lane_at + HEAD] = now + wait
end
if not has_ticket then
  -- Turns are spaced closer than the rate: whoever is told too short a wait asks once more, while too long a wait, while
  -- estimates are still rough, would leave capacity unused.
  state[lane_at + TAIL] = position + turn * lane_yield(state, lane) * SPACING
end
return reply(WAIT, wait, binding, deficit, position)
