-- A lane's queue: start-time fair queueing without a list of waiting callers. Turns are amounts of
-- work and never times: a change of the rate changes a turn's meaning with it. They are whole
-- billionths of a limit (grains), so that sums are exact. A hash has each tenant's packed line: the
-- end of the last admitted call's turn (served), and the end of the last turn (tail). A tenant
-- without a line starts where a new tenant would.
local LINE_FORMAT = '<dd'

-- Work of all waiting callers of a lane.
local function waiting_work(state, lane)
  local slot = lane_slot(lane)
  return math.max(0, state[slot + WAITING] - state[slot + PASSED])
end

-- Moves the queue on by work that no caller came for, or that was used without being asked for:
-- absent callers hold up no others.
local function pass(lines, work)
  local waiting = 0
  for _, line in pairs(lines) do
    waiting = waiting + (line.tail > line.served and 1 or 0)
  end
  local each = math.floor(work / waiting)
  for _, line in pairs(lines) do
    if line.tail > line.served then
      line.served = math.min(line.served + each, line.tail)
      line.changed = true
    end
  end
end

local function load_queue(state, lane, tenants_key)
  local slot, lines = lane_slot(lane), {}
  local kept = redis.call('HGETALL', tenants_key)
  for index = 1, #kept, 2 do
    local served, tail = struct.unpack(LINE_FORMAT, kept[index + 1])
    lines[kept[index]] = { served = served, tail = tail }
  end
  if state[slot + PASSED] > 0 then
    pass(lines, state[slot + PASSED] * GRAIN)
    state[slot + PASSED] = 0
  end
  return { slot = slot, key = tenants_key, lines = lines, is_new = #kept == 0 }
end

-- The queue's virtual time: the least served tenant that waits; without waiting tenants, the most
-- served.
local function queue_clock(queue)
  local least, most = nil, 0
  for _, line in pairs(queue.lines) do
    most = math.max(most, line.served)
    if line.tail > line.served then
      least = math.min(least or math.huge, line.served)
    end
  end
  return least or most, most
end

-- A caller's position: its turn, and the work before it in parts of a limit. A call without a
-- ticket comes last. A call with a ticket from another life of the state has waited, and comes
-- first.
local function queue_position(state, queue, tenant, epoch, position, now)
  local turn = position - 1
  if epoch ~= state[EPOCH] or position == 0 then
    local own, front = queue.lines[tenant], queue_clock(queue)
    turn = math.max(front, position == 0 and own and own.tail or 0)
  end
  local ahead = 0
  for _, line in pairs(queue.lines) do
    ahead = ahead + math.max(0, math.min(line.tail, turn) - line.served)
  end
  local slot = queue.slot
  if state[slot + LATE_UNTIL] > now and state[slot + LATE_TURN] < turn then
    ahead = ahead + state[slot + LATE_WORK]
  end
  return { turn = turn, ahead = ahead / GRAIN }
end

-- A tenant's line. A tenant without waiting callers that has had less than others starts where a
-- new tenant would.
local function line_of(queue, tenant, turn)
  local line = queue.lines[tenant]
  if not line or line.tail <= line.served and line.served < turn then
    line = { served = turn, tail = turn }
  end
  queue.lines[tenant], line.changed = line, true
  return line
end

-- Admits a caller. Returns by how much that moves the queue on. The value of a turn is taken from
-- the use of admitted calls, because estimates change and callers vanish while others wait.
local function admit_in_queue(state, queue, tenant, position, work)
  local line, slot = line_of(queue, tenant, position.turn), queue.slot
  local before = line.served
  line.served = math.max(before, position.turn + work)
  line.tail = math.max(line.tail, line.served)
  if state[slot + LATE_TURN] == position.turn then
    state[slot + LATE_UNTIL] = 0
  end
  return line.served - before
end

-- Adds a caller that comes back by `until_when`. A caller whose turn passed while it was away goes
-- before others until then.
local function enqueue(state, queue, tenant, position, work, until_when, now)
  local line, slot = line_of(queue, tenant, position.turn), queue.slot
  line.tail = math.max(line.tail, position.turn + work)
  local late = state[slot + LATE_UNTIL] > now and state[slot + LATE_TURN] < position.turn
  if position.turn < line.served and not late then
    state[slot + LATE_TURN], state[slot + LATE_WORK] = position.turn, work
    state[slot + LATE_UNTIL] = until_when
  end
end

-- Removes one waiting caller.
local function give_up(line, turn, work)
  if turn + work >= line.tail then
    line.tail = math.max(line.served, math.min(turn, line.tail))
  else
    line.served = math.min(line.served + work, line.tail)
  end
  line.changed = true
end

-- Work of all waiting callers, in parts of a limit.
local function waiting_in(queue)
  local waiting = 0
  for _, line in pairs(queue.lines) do
    waiting = waiting + line.tail - line.served
  end
  return waiting / GRAIN
end

local function save_queue(state, quota, queue, now)
  local front, most = queue_clock(queue)
  state[queue.slot + WAITING] = waiting_in(queue)
  local gone = {}
  for tenant, line in pairs(queue.lines) do
    if line.tail <= line.served and line.served <= front and line.served < most then
      gone[#gone + 1] = tenant
    elseif line.changed then
      redis.call('HSET', queue.key, tenant, struct.pack(LINE_FORMAT, line.served, line.tail))
    end
  end
  -- Delete last: a hash that is empty in between would lose its time to live.
  for first = 1, #gone, WALK do
    redis.call('HDEL', queue.key, unpack(gone, first, math.min(first + WALK - 1, #gone)))
  end
  if queue.is_new or now - state[KEPT] >= quota[WINDOW] * HALF then
    redis.call('PEXPIRE', queue.key, HOUR / MILLISECOND)
  end
end
