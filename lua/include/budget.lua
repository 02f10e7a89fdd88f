-- Shared by the budget scripts: whole numbers as decimal text, and a hash that expires two days
-- after the last call held in it, or after 30 days for a budget without days.

-- Checks that there are `least` to `most` arguments, and that those from `first` on are whole
-- numbers below 2^53. Returns the arguments with these as numbers, or nil and an error reply.
local function budget_arguments(first, least, most)
  if #ARGV < least or #ARGV > most then
    local wanted = least == most and least or least .. ' to ' .. most
    return nil, redis.error_reply('TIDEGATE wants ' .. wanted .. ' arguments, not ' .. #ARGV)
  end
  local given = { unpack(ARGV) }
  for index = first, #ARGV do
    given[index] = string.match(ARGV[index], '^%d+$') and tonumber(ARGV[index])
    if not given[index] or given[index] >= 2 ^ 53 then
      local what = ' must be a whole number below 2^53'
      return nil, redis.error_reply('TIDEGATE argument ' .. index .. what)
    end
  end
  return given
end

-- A whole number as text: Lua itself writes large ones with an exponent.
local function format_whole(number)
  return string.format('%.0f', number)
end

local A_DAY = 86400000000

-- The day of a daily budget; 0 for any other.
local function budget_day(daily, now)
  return daily and math.floor(now / A_DAY) or 0
end

local function keep_budget(key, daily)
  redis.call('EXPIRE', key, daily and 172800 or 2592000)
end
