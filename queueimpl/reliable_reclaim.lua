-- Ends claims that have run out. Returns how many.
--
-- KEYS     as in reliable_common.lua, KEYS[1] the waiting tasks
-- ARGV[1]  how many at most
-- ARGV[2]  deliveries after which a task becomes a dead letter, 0 for no bound

return reclaim(ARGV[1], tonumber(ARGV[2]))
