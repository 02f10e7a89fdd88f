-- Arguments are checked before anything is written, so that a bad call changes nothing.
local function bad_argument(index, what)
  return redis.error_reply('TIDEGATE argument ' .. index .. ' must be ' .. what .. ', not "' .. string.sub(tostring(ARGV[index]), 1, 40) .. '"')
end

-- The first argument from `from` to `to` that is no number of at least 0, as an error reply; else nil.
local function check_numbers(from, to)
  for index = from, to do
    local number = tonumber(ARGV[index])
    if not number or number < 0 or number ~= number or number == math.huge then
      return bad_argument(index, 'a number of at least 0')
    end
  end
end

local function numbers(from, count)
  local list = {}
  for index = 1, count do
    list[index] = tonumber(ARGV[from + index - 1])
  end
  return list
end
