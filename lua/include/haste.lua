-- Why a caller comes back sooner than its turn says.

-- When a call comes again whose turn is `wait` away: while a burst has room, those who are within
-- it come in order and up to twelve times sooner. Not while the window is full (a bucket's level is
-- its pace) or the head of the queue is held up for a second more than the pace holds it up, which
-- a burst may lift.
local function wait_in_burst(burst, state, model, limits, credit, kept, head, wait, now)
  local HELD_UP, SOON, SPRINT = 1000000, 200000, 12
  local room, ahead, to = 0, pace_ahead(state, limits, now), burst.allowance
  local held_up = head - now - math.max(0, ahead - to)
  local grows, bucket = fullness(state, limits, credit) < TOO_FULL, is_bucket(burst, model)
  if held_up <= HELD_UP and (grows or bucket) then
    if grows and now >= burst.steady_until then
      to = math.max(to, most_allowed(burst, model, now))
    end
    room = bucket and left_of(state, model, limits, credit, kept) or math.huge
    room = math.max(0, math.min(room, to * (1 - kept.most) - ahead))
  end
  return math.min(wait, math.max(SOON, wait / SPRINT, wait - room))
end

-- How long a wait for a turn is, by what calls of the lane use now: where that is much less than
-- when the turns were given (a prompt has come into a cache, a limit was raised) the queue is done
-- sooner than its turns say. It holds for a call that is no larger than the mean. Of few callers
-- the turns say it better than the mean does.
local function hastened(asked, wait)
  local MANY, CALLS_KNOWN, MUCH, FASTEST = 50, 8, 1.25, 4
  local state, now, lane_at = asked.quota.state, asked.quota.now, asked.lane_at
  local waiting, calls = state[lane_at + WAITING], state[lane_at + USED + REQUESTS]
  local slowest = fullest(state, asked.limits)
  if waiting < MANY or calls < CALLS_KNOWN or slowest == 0 or asked.usual[slowest] <= 0 then
    return wait
  end
  local usually = asked.usual[slowest] * asked.limits[slowest] / asked.roomy[slowest]
  local mean = state[lane_at + USED + slowest] / calls * asked.quota.model[WINDOW] / usually
  local each = math.max(mean, turn_length(asked))
  local queue = state[lane_at + TAIL] + state[lane_at + SHIFT] - now
  local faster = queue / (waiting * math.max(each, 1))
  return faster > MUCH and wait / math.min(faster, FASTEST) or wait
end

-- The longest wait that a caller is told before it is known what a cache gives, or what the
-- provider counts: ten seconds, and twice that with each minute, for four of them. Told the wait
-- for whole prompts, or for all of `max_tokens`, it would sleep long after its turn.
local function longest_unknowing(learned, now)
  local AT_FIRST, MINUTES = 10000000, 4
  local calls = math.floor(learned[5])
  if calls == 0 or (learned[6] > 0 and now - learned[7] >= CACHE_LIVES) then
    return AT_FIRST
  end
  local minutes = (minute_of(now) - (learned[5] - calls) * MINUTES_KEPT) % MINUTES_KEPT
  return minutes < MINUTES and AT_FIRST * 2 ^ minutes or math.huge
end
