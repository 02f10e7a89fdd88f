-- The server's time in microseconds, or the test's clock.
local function clock(override)
  if override > 0 then
    return override
  end
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
