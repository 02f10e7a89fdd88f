--[[
Gives each lane a number that it keeps, so that programs with different lanes do not confuse them.

Guarantees
  * A lane keeps its number as long as any program names it once in `life`; no other lane gets it.
  * An unknown lane gets the number that the program has for it, or the lowest free one, in the
    order given.

Keys
  KEYS[1] lanes  hash: lane → its number, share, ceiling, and when it was last named in seconds,
                 with a space between

Arguments: text
  ARGV[1] life: whole seconds after which an unnamed lane is forgotten
  then for each of the program's lanes its name, share, ceiling, and the number that the program has
  for it, 0 for none

Reply: lane, its number, share and ceiling with a space between, lane, … in no order
]]
local MOST_LANES, KEPT = 200, '^((%d+) %S+ %S+) (%d+)$'
local life = tonumber(ARGV[1])
if #ARGV < 5 or (#ARGV - 1) % 4 ~= 0 or not life or life < 1 then
  return redis.error_reply('TIDEGATE wants a life of at least 1 second, then 4 words for each lane')
end
for index = 2, #ARGV, 4 do
  local share, ceiling = tonumber(ARGV[index + 1]), tonumber(ARGV[index + 2])
  local number = tonumber(ARGV[index + 3])
  local fits = share and ceiling and number and share >= 0 and share <= 1
  fits = fits and ceiling >= 0 and ceiling <= 1
  fits = fits and number >= 0 and number <= MOST_LANES and number == math.floor(number)
  if ARGV[index] == '' or not fits then
    local wanted = 'a name, share and ceiling from 0 to 1, and a number from 0 to ' .. MOST_LANES
    return redis.error_reply('TIDEGATE argument ' .. index .. ' and the next must be ' .. wanted)
  end
end
local known, taken, count, values = {}, {}, 0, {}
local all, now = redis.call('HGETALL', KEYS[1]), redis.call('TIME')[1]
for index = 1, #all, 2 do
  local value, digits, named = string.match(all[index + 1], KEPT)
  if value and now - named < life then
    local number = tonumber(digits)
    known[all[index]], taken[number], count = number, true, count + 1
    values[all[index]] = value
  end
end
for index = 2, #ARGV, 4 do
  count = count + (known[ARGV[index]] and 0 or 1)
end
if count > MOST_LANES then
  return redis.error_reply('TIDEGATE knows at most ' .. MOST_LANES .. ' lanes')
end
local function lowest_free()
  local number = 1
  while taken[number] do
    number = number + 1
  end
  return number
end
for index = 2, #ARGV, 4 do
  local name, wanted = ARGV[index], tonumber(ARGV[index + 3])
  local number = known[name]
  if not number then
    number = wanted > 0 and not taken[wanted] and wanted or lowest_free()
    known[name], taken[number] = number, true
  end
  values[name] = string.format('%d %s %s', number, ARGV[index + 1], ARGV[index + 2])
  redis.call('HSET', KEYS[1], name, values[name] .. ' ' .. now)
end
for index = 1, #all, 2 do
  if not values[all[index]] then
    redis.call('HDEL', KEYS[1], all[index])
  end
end
redis.call('EXPIRE', KEYS[1], life)
local reply = {}
for name, value in pairs(values) do
  reply[#reply + 1], reply[#reply + 2] = name, value
end
return reply
