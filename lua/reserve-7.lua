--[[
Reserves what one provider call will use, or returns when to come back. All or nothing over every
dimension. Several calls of one lane, tenant and template may ask together: each is answered as if
it had asked alone, in their order and at one time.

Guarantees
  * No more is drawn ahead of the plan's rate than its capacity, and no window has more than the
    plan allows; a call larger than the capacity goes when nothing is drawn.
  * An id is admitted once: asking again after a lost reply gives the same answer and costs
    nothing.
  * A refusal draws nothing. It returns a ticket: coming back with it keeps the caller's turn in its
    lane.
  * First come, first served among a tenant's calls in a lane, and equal parts of the lane for its
    tenants. A turn is an amount of work: a change of the rate changes no order.

Keys, all with the hash tag {provider:model}
  KEYS[1] ledger   sorted set, reservation id by time of admission
  KEYS[2] entries  hash, reservation id to its packed entry, see include/entries.lua
  KEYS[3] state    packed doubles, see include/state.lua
  KEYS[4] leases   sorted set, id of a call that outlived the window by the end of its lease
  KEYS[5] day      packed doubles, see include/day.lua
  KEYS[6] learned  packed doubles, see include/learned.lua
  KEYS[7] tenants  hash of this lane, tenant to its packed line, see include/queue.lua

Arguments (numbers packed as little-endian doubles, times in microseconds)
  ARGV[1]  reservation id, unique to one attempt
  ARGV[2]  the call, 9 numbers, and of each further call as many (the first's clock counts):
             1      lane, counted from 1; the same for all
             2, 3   ticket: epoch and position, 0 without a ticket
             4..7   amounts to reserve: requests, input, output, combined tokens
             8      1 to return what is expected of such calls, else 0
             9      clock for tests, 0 for the server's
  ARGV[3]  the quota, see include/arguments.lua
  ARGV[4]  tenant
  ARGV[5]… reservation ids of further calls

Reply: integers, of each call
  1 outcome      1 granted, 2 wait, 3 paused, 4 never fits, 5 exhausted; 6 there is no plan, or the
                 caller must write another one, or keys are lost: nothing was decided;
                 inspect-8.lua and then plan-7.lua repair it
  2 wait         microseconds until it is worth asking again (rounded up); for 5 until the end
  3 hold         what it waits for: 1 to 4 the level of requests, input, output, combined tokens; 11
                 to 14 the window of these; 5 calls at once; 6 the lane's turn; 7 the probe call
                 after a refusal; 8 requests and 9 tokens of the day; 10 other lanes, or the
                 lane's ceiling; 0 none, or the gate
  4 deficit      by how much the call exceeds the room there; for 4 the most that fits
  5 epoch        of the ticket
  6 position     of the ticket
  7 ratio        real over estimated input in millionths, 0 unknown or not asked for
  8 output       expected output tokens, 0 unknown or not asked for
  9 cached       input tokens that a cache gives and the provider does not count, 0 unknown or not
                 asked for
  10 turn        with 2 and 3: microseconds until its turn at the present rate (rounded up); at
                 least the wait; else 0
]]
--- @include "include/numbers"
--- @include "include/arguments"
--- @include "include/clock"
--- @include "include/state"
--- @include "include/entries"
--- @include "include/levels"
--- @include "include/holds"
--- @include "include/gate"
--- @include "include/day"
--- @include "include/queue"
--- @include "include/room"
--- @include "include/learned"
--- @include "include/plan"
local GRANTED, WAIT, CLOSED_NOW, NEVER, EXHAUSTED_NOW, NO_PLAN = 1, 2, 3, 4, 5, 6
local NUMBERS_OF_A_CALL, OTHER_ARGUMENTS = 9, 3

local count = math.max(1, #ARGV - OTHER_ARGUMENTS)
local calls, quota =
  read_arguments(count + OTHER_ARGUMENTS, 2, NUMBERS_OF_A_CALL * count)
if not calls then
  return quota
end
local lane, tenant = calls[1], ARGV[4]

local function id_at(place)
  return ARGV[place == 1 and 1 or place + OTHER_ARGUMENTS]
end

-- The error reply for a wrong call, else nil.
local function wrong_call()
  if not is_lane(lane, quota) then
    return bad_argument(2, 'a call in a lane of the quota')
  end
  for place = 1, count do
    if id_at(place) == '' then
      return bad_argument(place == 1 and 1 or place + OTHER_ARGUMENTS, 'a reservation id')
    end
    if calls[NUMBERS_OF_A_CALL * (place - 1) + 1] ~= lane then
      return bad_argument(2, 'calls in one lane')
    end
  end
end

local refusal = wrong_call()
if refusal then
  return refusal
end
local keys = common_keys()
local state, now = load_quota(keys, quota, calls[NUMBERS_OF_A_CALL])
if not state then
  return now
end
local has_plan, queue, learned = not wants_plan(state, quota, now), nil, nil
has_plan = has_plan and not state.is_broken
if has_plan then
  queue = load_queue(state, lane, KEYS[7])
end

local function reply(call, outcome, wait, hold, deficit, turn, until_turn)
  local ratio, expected_output, cached = 0, 0, 0
  if call[8] > 0 then
    learned = learned or load_learned(KEYS[6])
    ratio, expected_output, cached = expectation(learned)
  end
  return {
    outcome,
    math.ceil(wait),
    hold,
    math.ceil(deficit),
    turn and state[EPOCH] or 0,
    turn and turn + 1 or 0,
    ratio,
    expected_output,
    cached,
    math.ceil(until_turn or 0),
  }
end

-- The answer to a call for which waiting is useless, else nil.
local function final_answer(call, need)
  local ceiling = quota[LANE_SHARES + 2 * lane]
  for dimension = 1, DIMENSIONS do
    local most = state[dimension_slot(dimension) + MOST]
    local largest = most_of_lane(most, ceiling)
    if most > 0 and need[dimension] > largest then
      return reply(call, NEVER, 0, dimension, largest)
    end
  end
  if state[CLOSED] == EXHAUSTED and state[GATE] > now then
    return reply(call, EXHAUSTED_NOW, state[GATE] - now, 0, 0)
  end
  local hold, over = day_spent(keys, quota, need, now)
  return hold and reply(call, EXHAUSTED_NOW, day_left(quota, now), hold, over)
end

-- Admits a call.
local function admit(id, need, position, work, grains)
  local probe = state[CLOSED] == OPEN and 0 or 1
  if probe == 1 then
    state[PROBE] = now
  end
  local progress = admit_in_queue(state, queue, tenant, position, grains)
  local slot_of_lane = lane_slot(lane)
  state[slot_of_lane + LANE_STANDBY] = math.max(0, state[slot_of_lane + LANE_STANDBY] - work)
  if work >= state[slot_of_lane + NEED] then
    state[slot_of_lane + NEED], state[slot_of_lane + NEED_UNTIL] = 0, 0
  end
  local before = {}
  for dimension = 1, DIMENSIONS do
    local slot = dimension_slot(dimension)
    before[#before + 1] = state[slot + DRAWN] - state[slot + CHANGED]
    before[#before + 1] = state[slot + HELD]
    before[#before + 1] = state[slot + TOTAL]
    before[#before + 1] = state[slot + SPENT]
  end
  draw(state, need)
  for dimension = 1, DIMENSIONS do
    local slot = dimension_slot(dimension)
    if state[slot + MOST] > 0 then
      local drawn = math.min(state[slot + DRAWN], state[slot + CAPACITY])
      state[slot + PEAK] = math.max(state[slot + PEAK], drawn)
    end
  end
  insert_entry(keys, state, id, {
    admitted = now,
    lane = lane,
    condition = RESERVED,
    probe = probe,
    progress = progress,
    amounts = need,
    before = struct.pack(BEFORE_FORMAT, unpack(before)),
  })
  add_in_flight(state, lane, 1)
  add_to_day(keys, quota, now, need[REQUESTS], need[COMBINED], now)
end

local function answer(id, call)
  local need = { call[4], call[5], call[6], call[7] }
  if redis.call('HEXISTS', keys.entries, id) == 1 then
    return reply(call, GRANTED, 0, 0, 0)
  end
  local none = final_answer(call, need)
  if none then
    return none
  end
  local position = queue_position(state, queue, tenant, call[2], call[3], now)
  local work = work_of(state, need)
  local grains = math.ceil(work * GRAIN)
  local obstacle = until_room(keys, state, quota, lane, position, need, work, now)
  local shut, hold = closed_hold(state, now)
  if shut > 0 and shut >= obstacle.wait then
    obstacle = { wait = shut, hold = hold, over = 0 }
  end
  if obstacle.wait <= 0 then
    admit(id, need, position, work, grains)
    return reply(call, GRANTED, 0, 0, 0)
  end
  local comes_by = now + obstacle.wait + QUIET
  enqueue(state, queue, tenant, position, grains, comes_by, now)
  state[queue.slot + WAITING] = waiting_in(queue)
  -- A lane saves for its first caller only; otherwise two lanes could wait for each other.
  if position.ahead <= 0 and work >= saves_for(state, lane, now) then
    state[queue.slot + NEED], state[queue.slot + NEED_UNTIL] = work, comes_by
  end
  if obstacle.hold == 0 then
    return reply(call, CLOSED_NOW, obstacle.wait, 0, 0, position.turn, obstacle.wait)
  end
  local wait = spread_wait(state, quota, lane, obstacle.wait, now)
  return reply(call, WAIT, wait, obstacle.hold, obstacle.over, position.turn, obstacle.wait)
end

-- The replies to all calls, one after the other.
local function answers()
  local all = {}
  for place = 1, count do
    local at = NUMBERS_OF_A_CALL * (place - 1)
    local call = { unpack(calls, at + 1, at + NUMBERS_OF_A_CALL) }
    local each = has_plan and answer(id_at(place), call) or reply(call, NO_PLAN, 0, 0, 0)
    for _, number in ipairs(each) do
      all[#all + 1] = number
    end
  end
  if has_plan then
    save_queue(state, quota, queue, now)
  end
  save_state(keys, quota, state, now)
  return all
end

return answers()
