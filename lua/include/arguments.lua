-- Arguments are checked before anything is written, so that a bad call changes nothing.
local function bad_argument(index, what)
  return redis.error_reply('TIDEGATE argument ' .. index .. ' must be ' .. what .. ', not "' .. string.sub(tostring(ARGV[index]), 1, 40) .. '"')
end

-- Arguments `from` to `to` as numbers of at least 0, at their own places in `list`; an error reply for the first that is none.
local function read_numbers(list, from, to)
  for index = from, to do
    local number = tonumber(ARGV[index])
    if not number or number < 0 or number ~= number or number == math.huge then
      return bad_argument(index, 'a number of at least 0')
    end
    list[index] = number
  end
end

local function four(list, from)
  return { list[from], list[from + 1], list[from + 2], list[from + 3] }
end
