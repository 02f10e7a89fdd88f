-- Rebuilds ledger, leases and totals from the entries. A server that evicts keys, or a failover
-- that lost some, leaves parts of what belongs together; what has no entry is forgotten.
local function recount(keys, state, quota, now)
  for dimension = 1, DIMENSIONS do
    local slot = dimension_slot(dimension)
    state[slot + TOTAL], state[slot + HELD] = 0, 0
  end
  for lane = 1, state[LANES] do
    for slot = lane_slot(lane) + LANE_FLIGHT, lane_slot(lane) + USED + DIMENSIONS do
      state[slot] = 0
    end
  end
  state[FLIGHT], state[PROGRESS], state[KEPT] = 0, 0, 0
  redis.call('DEL', keys.ledger)
  local all, outlived = redis.call('HGETALL', keys.entries), {}
  for index = 1, #all, 2 do
    local id, entry = all[index], unpack_entry(all[index + 1])
    if entry.condition ~= OUTLIVED then
      redis.call('ZADD', keys.ledger, string.format('%.0f', entry.admitted), id)
      add_to_window(state, entry, 1)
    else
      outlived[id] = redis.call('ZSCORE', keys.leases, id)
        or string.format('%.0f', now + quota[CALL_LEASE])
    end
    if entry.condition ~= SETTLED then
      add_in_flight(state, entry.lane, 1)
    end
  end
  redis.call('DEL', keys.leases)
  for id, ends in pairs(outlived) do
    redis.call('ZADD', keys.leases, ends, id)
  end
  refresh_oldest(keys, state)
  refresh_leases(keys, state)
end
