-- Returns tasks that are due, and changes nothing.
--
-- KEYS[1]  tasks by due time
-- ARGV[1]  how many at most
-- Returns the id, the score, attempt 1 and an empty receipt of each task.

local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', score(now), 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local tasks = {}
for i = 1, #due, 2 do
  for _, field in ipairs({due[i], due[i + 1], '1', ''}) do
    tasks[#tasks + 1] = field
  end
end
return tasks
