-- The numbers of the holds in replies: what a call waits for. 1 to 4 are the levels of the
-- dimensions, and 11 to 14 their windows.
local BY_GATE, BY_FLIGHT, BY_TURN, BY_PROBE = 0, 5, 6, 7
local BY_CALLS_OF_DAY, BY_TOKENS_OF_DAY, BY_LANE, BY_WINDOW = 8, 9, 10, 10
