--[[
Reserves what one provider call will use, or says when to come back. All or nothing over every
dimension. Several calls of one lane, tenant and template may be asked about together: they are
answered in their order, as if each had been asked about by itself at one time.

Guarantees
  * In any window the admitted amounts stay within each limit, and no faster than the pace clock
    allows.
  * The same id is admitted once: asking again after a lost reply answers as the first time and
    costs nothing.
  * A refusal changes no amount. It returns a ticket: coming back with it keeps the caller's turn in
    its lane.
  * First come, first served among a tenant's calls in a lane, and equal parts of the lane's tokens
    for its tenants; a newcomer never overtakes a call of its tenant whose turn has not come yet,
    except into capacity that no call has used for 300 ms.

Keys, all with the hash tag {provider:model}
  KEYS[1] ledger   sorted set, reservation id by time of admission
  KEYS[2] entries  hash, reservation id to its packed entry
  KEYS[3] state    packed doubles, see include/state.lua
  KEYS[4] leases   sorted set, id of a call that outlived the window by the end of its lease
  KEYS[5] tuning   packed doubles, see include/tuning.lua
  KEYS[6] learned  packed doubles, see include/learned.lua
  KEYS[7] tenants  sorted set of this lane, tenant by the end of its queue
  KEYS[8] burst    packed doubles, see include/burst.lua

Arguments (numbers packed as little-endian doubles, times in microseconds)
  ARGV[1]  reservation id, unique to one attempt
  ARGV[2]  the call, 9 numbers, and of each further call as many (the first's clock counts):
             1      lane, counted from 1; the same for all
             2, 3   ticket: epoch and position, 0 without a ticket
             4..7   amounts to reserve: requests, input, output, combined tokens
             8      1 to be told what is expected of such calls, 2 also where it is not known what
                    a cache gives and the provider does not count, 3 also where the provider
                    holds `max_tokens` and does not say what it counts, 0 if it is known, and
                    has been for some minutes
             9      clock for tests, 0 for the server's
  ARGV[3]  the model, see include/arguments.lua
  ARGV[4]  tenant
  ARGV[5]… reservation ids of further calls

Reply: integers, of each call
  1 outcome      1 granted, 2 wait, 3 paused, 4 never fits, 5 exhausted
  2 wait         microseconds until it is worth asking again (rounded up); for 5 until the end
  3 dimension    the one that binds: 1 requests, 2 input, 3 output, 4 combined, 5 calls at once;
                 6 the lane's turn; 7 the call that goes first after a pause; 8 requests and
                 9 tokens of the day; 0 none, or the provider said so
  4 deficit      by how much that dimension is over; for 4 its capacity
  5 epoch        of the ticket
  6 position     of the ticket
  7 ratio        real over estimated input in millionths, 0 unknown or not asked for
  8 output       expected output tokens, 0 unknown or not asked for
  9 cached       input tokens that a cache gives and the provider does not count, 0 unknown or not
                 asked for: to be taken off the estimate, for a minute
]]
--- @include "include/arguments"
--- @include "include/clock"
--- @include "include/state"
--- @include "include/ledger"
--- @include "include/tuning"
--- @include "include/gate"
--- @include "include/company"
--- @include "include/lanes"
--- @include "include/shift"
--- @include "include/burst"
--- @include "include/growth"
--- @include "include/quota"
--- @include "include/queue"
--- @include "include/learned"
--- @include "include/obstacles"
--- @include "include/haste"
--- @include "include/starving"
--- @include "include/counted"
local GRANTED, OUT = 1, 5

local count = math.max(1, #ARGV - 3)
local calls, model = read_arguments(count + 3, 2, 9 * count)
if not calls then
  return model
end
local tenant, tenants_key = ARGV[4], KEYS[7]
local lane, lanes = calls[1], (#model - LANE_SHARES) / 2

local function id_at(place)
  return ARGV[place == 1 and 1 or place + 3]
end

-- What is wrong with one of the calls, as an error reply, else nil.
local function wrong_call()
  if lane < 1 or lane > lanes or lane ~= math.floor(lane) then
    return bad_argument(2, 'a call in a lane from 1 to ' .. lanes)
  end
  for place = 1, count do
    if id_at(place) == '' then
      return bad_argument(place == 1 and 1 or place + 3, 'a reservation id')
    end
    if calls[9 * place - 8] ~= lane then
      return bad_argument(2, 'calls in one lane')
    end
  end
end

local refusal, quota = wrong_call(), nil
if refusal then
  return refusal
end
local keys = common_keys()
keys.burst = KEYS[8]
quota, refusal = load_quota(keys, model, calls[9])
if not quota then
  return refusal
end
local state, now, burst, lane_at = quota.state, quota.now, quota.burst, lane_slot(lane)
-- The call that is asked about now.
local id, call

-- What is known of such calls, read once.
local function learned_now()
  quota.learned = quota.learned or load_learned(KEYS[6])
  return quota.learned
end

local function reply(outcome, wait, dimension, deficit, ticket)
  local ratio, expected_output, cached = 0, 0, 0
  if call[8] > 0 then
    ratio, expected_output, cached = expectation(learned_now(), now)
  end
  return {
    outcome,
    math.ceil(wait),
    dimension,
    math.ceil(deficit),
    ticket and state[EPOCH] or 0,
    ticket and math.floor(ticket) or 0,
    ratio,
    expected_output,
    cached,
  }
end

-- The answer while the day's limit is spent, else nil.
local function day_spent(amounts)
  local BY_DAY_REQUESTS, BY_DAY_TOKENS = 8, 9
  local tuning = quota.tuning
  if not tuning then
    return nil
  end
  local day_left = FULL_DAY - (now + model[DAY_OFFSET]) % FULL_DAY
  local requests_over = tuning[DAY_REQUESTS] + amounts[REQUESTS] - model[DAY_REQUEST_LIMIT]
  if model[DAY_REQUEST_LIMIT] > 0 and requests_over > 0 then
    return reply(OUT, day_left, BY_DAY_REQUESTS, requests_over)
  end
  local tokens_over = tuning[DAY_TOKENS] + amounts[COMBINED] - model[DAY_TOKEN_LIMIT]
  if model[DAY_TOKEN_LIMIT] > 0 and tokens_over > 0 then
    return reply(OUT, day_left, BY_DAY_TOKENS, tokens_over)
  end
end

-- Read: the question and what of the limits it may use, or nil and an answer that needs no more.
local function read()
  local CLOSED, NEVER = 3, 4
  local amounts = { call[4], call[5], call[6], call[7], 1 }
  if holds_nothing(state) then
    local _, expected = expectation(learned_now(), now)
    if expected > 0 then
      amounts[OUTPUT] = math.min(amounts[OUTPUT], expected)
      amounts[COMBINED] = math.min(amounts[COMBINED], amounts[INPUT] + amounts[OUTPUT])
    end
  end
  if state[lane_at + SEEN_AT] == 0 then
    redis.call('DEL', tenants_key)
  end
  state[lane_at + SEEN_AT] = now
  if redis.call('HEXISTS', keys.entries, id) == 1 then
    return nil, reply(GRANTED, 0, 0, 0)
  end
  local limits, whole = limits_now(model, quota.tuning)
  for dimension = 1, IN_FLIGHT do
    local limit, amount = limits[dimension], amounts[dimension]
    if limit > 0 then
      local ceiling = model[LANE_SHARES + 2 * lane] * whole[dimension]
      if amount > ceiling and dimension <= WINDOWED then
        return nil, reply(NEVER, 0, dimension, ceiling)
      end
      -- What a refusal has taken off comes back, so a call as large as the whole limit waits and is
      -- not turned away.
      limits[dimension] = math.max(limit, amount)
    end
  end
  local position = call[3]
  local has_ticket = call[2] == state[EPOCH] and position > 0
  if position > 0 and not has_ticket then
    begin_steady(burst, model, now)
  end
  local pause = closed_for(state, now)
  if pause > 0 then
    local outcome = state[CLOSED_FOR] == EXHAUSTED and OUT or CLOSED
    return nil, reply(outcome, pause, 0, 0, has_ticket and position or nil)
  end
  local spent = day_spent(amounts)
  if spent then
    return nil, spent
  end
  local speed, tolerance = PACE_SPEEDUP, model[TOLERANCE]
  local credit, roomy = credits(burst, state, model, limits, now), {}
  local kept = kept_for_others(state, model, lane, lanes, limits, now)
  if burst then
    grow(burst, state, model, limits, credit, kept, now)
    speed, tolerance = pace_speed(burst, model), burst.allowance
  end
  for dimension = 1, IN_FLIGHT do
    local most = math.max(limits[dimension] + credit[dimension], amounts[dimension])
    roomy[dimension] = limits[dimension] > 0 and most or 0
  end
  local capacity, usual = lane_capacity(state, model, lane, lanes, roomy, amounts, now)
  if limits[IN_FLIGHT] > 0 and over_in_flight(state, lane_at, limits, capacity) > 0 then
    end_leases(keys, state, model, now)
  end
  if state[CANARY] > WANTED and now >= state[CANARY] + CANARY_PATIENCE then
    state[CANARY] = 0
  end
  return {
    quota = quota,
    lane = lane,
    lanes = lanes,
    lane_at = lane_at,
    amounts = amounts,
    limits = limits,
    credit = credit,
    kept = kept,
    roomy = roomy,
    capacity = capacity,
    usual = usual,
    speed = speed,
    tolerance = tolerance,
    has_ticket = has_ticket,
    position = has_ticket and position or nil,
  }
end

-- Decide: whether the call goes now, and what else is to be kept of it. A turn is a position in the
-- lane's virtual time; `shift` moves every turn of the lane at once. Each tenant has a queue of its
-- own in that time, so that one tenant's thousand documents do not stand before another's first.
local function decide(asked)
  local GONE, NEARLY, ASKS_CACHED, ASKS_COUNTING = 60000000, 10000000, 2, 3
  local shift, tail, head = state[lane_at + SHIFT], state[lane_at + TAIL], state[lane_at + HEAD]
  local queued = tail > now - shift
  local verdict = { queued = queued, shift = shift, position = asked.position }
  if not asked.has_ticket then
    verdict.position = now - shift
    if queued then
      local own = redis.call('ZSCORE', tenants_key, tenant) or 0
      verdict.position = math.max(verdict.position, own)
    end
    -- Turns that were not taken for a minute belong to callers that are gone.
    verdict.forgets = not queued and tail < verdict.position - GONE
  end
  verdict.due = verdict.position + shift
  if verdict.due > now then
    verdict.due = now + hastened(asked, verdict.due - now)
  end
  local obstacle = { wait = 0, binding = 0, deficit = 0 }
  local idle = keep_pace(asked, obstacle)
  local over = window_over(asked)
  keep_in_flight(asked, obstacle)
  keep_canary(asked, obstacle)
  make_room(asked, obstacle)
  verdict.over, verdict.turn_ends = over, verdict.position + turn_length(asked)
  -- A caller that is nearly due and finds room need not wait for a turn that was reckoned too late.
  local near = asked.has_ticket and head <= now and verdict.due - now < NEARLY
  local timely = verdict.due <= now or idle or near
  verdict.goes = obstacle.wait <= 0 and not over.any and timely
  if verdict.goes then
    return verdict
  end
  if verdict.due > now then
    -- While several tenants wait, virtual time runs slower than the clock: they ask once more. Told
    -- the longer wait, a tenant with few calls would come late and lose its part.
    local wait = verdict.due - now
    if burst and not over.any then
      local credit, kept = asked.credit, asked.kept
      wait = wait_in_burst(burst, state, model, asked.limits, credit, kept, head, wait, now)
    end
    if call[8] == ASKS_CACHED or call[8] == ASKS_COUNTING then
      wait = math.min(wait, longest_unknowing(learned_now(), now))
    end
    verdict.obstacle = { wait = wait, binding = BY_TURN, deficit = 0 }
  else
    local MIN_WAIT = 1000
    if over.any then
      wait_for_room(asked, over, obstacle)
    end
    obstacle.wait = math.max(obstacle.wait, MIN_WAIT)
    verdict.obstacle = obstacle
  end
  return verdict
end

-- Write: admitted. An idle pace and no blocked head mean that those with earlier turns are late or
-- gone: the queue moves up.
local function admit(asked, verdict)
  local amounts, limits = asked.amounts, asked.limits
  if asked.has_ticket then
    state[lane_at + WAITING] = math.max(0, state[lane_at + WAITING] - 1)
    if state[lane_at + WAITING] == 0 then
      state[lane_at + BACKLOGGED_AT] = 0
    end
  end
  if verdict.due > now then
    state[lane_at + SHIFT] = now - verdict.position
  elseif verdict.queued and not asked.has_ticket then
    local life = lifetime(state, model, now)
    move_tail(state, lane_at, tenants_key, tenant, verdict.turn_ends, now - verdict.shift, life)
  end
  enter(keys, state, now, id, lane, RESERVED, amounts)
  local input, output = amounts[INPUT], amounts[OUTPUT]
  add_to_span(state, input + output, math.max(input, output), input + output, now)
  add_to_day(quota.tuning, model, now, amounts[REQUESTS], amounts[COMBINED])
  add_in_flight(state, lane, 1)
  end_starving(state, lane)
  for dimension = 1, WINDOWED do
    if limits[dimension] > 0 then
      local slot = dimension_slot(dimension) + PACE
      local cost = amounts[dimension] * model[WINDOW] / (limits[dimension] * asked.speed)
      state[slot] = math.max(state[slot], now) + cost
    end
  end
  if state[CANARY] == WANTED then
    state[CANARY] = now
  end
  return reply(GRANTED, 0, 0, 0)
end

-- Write: a turn. A caller that is due and blocked holds the lane: none behind it goes first, so
-- large documents do not starve.
local function give_turn(asked, verdict)
  local WAIT = 2
  local position, wait = verdict.position, verdict.obstacle.wait
  local shift = verdict.shift
  if verdict.due <= now then
    if verdict.over.any then
      state[lane_at + BACKLOGGED_AT] = now
      spend_burst(burst, state, model, verdict.over.total, now)
      note_starving(asked)
    end
    shift = math.max(shift, now + wait - position)
    state[lane_at + SHIFT], state[lane_at + HEAD] = shift, now + wait
  end
  if not asked.has_ticket then
    local life = lifetime(state, model, now)
    move_tail(state, lane_at, tenants_key, tenant, verdict.turn_ends, now - shift, life)
    state[lane_at + WAITING] = state[lane_at + WAITING] + 1
  end
  return reply(WAIT, wait, verdict.obstacle.binding, verdict.obstacle.deficit, position)
end

local function answer()
  local asked, known = read()
  if not asked then
    return known
  end
  local verdict = decide(asked)
  if verdict.forgets then
    state[lane_at + WAITING] = 0
  end
  return (verdict.goes and admit or give_turn)(asked, verdict)
end

-- One reply after the other.
local function answers()
  local all = {}
  for place = 1, count do
    id, call = id_at(place), { unpack(calls, 9 * place - 8, 9 * place) }
    for _, number in ipairs(answer()) do
      all[#all + 1] = number
    end
  end
  save_quota(quota)
  return all
end

return answers()
