-- What the scripts of a budget have in common: whole numbers as decimal text, and a hash that lives
-- two days after the last call held in it, without days for 30.

-- Checks that there are from `least` to `most` arguments, and that those from `first` on are whole
-- numbers below 2^53. The arguments with these as numbers, or nil and an error reply.
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
local function whole(number)
  return string.format('%.0f', number)
end

local A_DAY = 86400000000

-- The day of a budget that begins anew each day, 0 for any other.
local function day_of(daily, now)
  return daily and math.floor(now / A_DAY) or 0
end

local function keep_budget(key, daily)
  redis.call('EXPIRE', key, daily and 172800 or 2592000)
end
