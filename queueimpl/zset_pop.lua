-- Removes tasks that are due from the queue, for good.
--
-- KEYS[1]  tasks by due time
-- KEYS[2]  journal: request -> what it took
-- ARGV[1]  how many at most
-- ARGV[2]  the request's id, empty for none
-- Returns the id, the score, attempt 1 and an empty receipt of each task.

local tasks = taken(KEYS[2], ARGV[2])
if tasks then
  return tasks
end
tasks = {}
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', score(now), 'WITHSCORES', 'LIMIT', 0, ARGV[1])
for i = 1, #due, 2 do
  redis.call('ZREM', KEYS[1], due[i])
  for _, field in ipairs({due[i], due[i + 1], '1', ''}) do
    tasks[#tasks + 1] = field
  end
end
remember(KEYS[2], ARGV[2], tasks)
return tasks
