-- Writes the stock, puts the caller's number on display, and leaves the machine.
--
-- KEYS[1]  pieces left
-- KEYS[2]  the number on display
-- KEYS[3]  the machine
-- ARGV[1]  the caller's number
-- ARGV[2]  pieces left, as the caller computed it
-- Returns {answer, pieces left}.

redis.call('SET', KEYS[1], ARGV[2])
redis.call('SET', KEYS[2], ARGV[1])
redis.call('DEL', KEYS[3])
return {'ok', ARGV[2]}
