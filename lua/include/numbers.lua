-- The numbers that scripts need; `quota/src/numbers.rs` has them with units and reasons, and a test
-- compares both. Times are microseconds. Scripts use no others but 0, 1 and units.
local QUIET, TASK_LEASE, PACE = 700000, 2000000, 250000
local STANDBY, HALF, FADE, REGAIN = 0.2, 0.5, 0.99, 0.05
local WALK, MOST_LOGGED, NEVER_DRAWN = 48, 48, 0.1
-- Units: milliseconds and times to live in microseconds, a ticket's grain, millionths.
local MILLISECOND, MINUTE, HOUR = 1000, 60000000, 3600000000
local DAY, MONTH = 86400000000, 2678400000000
local GRAIN, MILLION = 1000000000, 1000000
