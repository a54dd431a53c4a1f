-- Claims tasks that are due, after it has ended claims that have run out.
--
-- KEYS     as in reliable_common.lua, KEYS[1] the waiting tasks
-- ARGV[1]  how many at most
-- ARGV[2]  the visibility timeout in microseconds
-- ARGV[3]  deliveries after which a task becomes a dead letter, 0 for no bound
-- ARGV[4]  how many claims to end at a time
-- ARGV[5]  the request's id, empty for none
-- Returns the id, score, attempt and receipt of each task, and for how many
-- microseconds more its claim lasts.

-- lasting returns tasks with what left says of each id and receipt.
local function lasting(tasks, left)
  local reply = {}
  for i = 1, #tasks, 4 do
    for n = i, i + 3 do
      reply[#reply + 1] = tasks[n]
    end
    reply[#reply + 1] = left(tasks[i], tasks[i + 3])
  end
  return reply
end

local tasks = taken(KEYS[6], ARGV[5])
if tasks then
  -- The claims go on as they were: the request does not prolong them.
  return lasting(tasks, function(id, receipt)
    local _, last = claim_of(id)
    local ends = last == receipt and redis.call('ZSCORE', KEYS[2], id)
    return string.format('%d', ends and math.max(0, math.floor(tonumber(ends) * 1000000 - now + 0.5)) or 0)
  end)
end
tasks = {}
local deadline = score(now + tonumber(ARGV[2]))
repeat
  local ended = reclaim(ARGV[4], tonumber(ARGV[3]))
  local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', score(now), 'WITHSCORES', 'LIMIT', 0, ARGV[1])
  for i = 1, #due, 2 do
    local id = due[i]
    local attempt = claim_of(id) + 1
    local receipt = string.format('%d', redis.call('INCR', KEYS[5]))
    redis.call('ZREM', KEYS[1], id)
    redis.call('ZADD', KEYS[2], deadline, id)
    redis.call('HSET', KEYS[3], id, attempt .. ':' .. receipt .. ':' .. due[i + 1])
    for _, field in ipairs({id, due[i + 1], tostring(attempt), receipt}) do
      tasks[#tasks + 1] = field
    end
  end
  -- An empty reply is allowed only when no claim is left that has run out.
until #tasks > 0 or ended < tonumber(ARGV[4])
remember(KEYS[6], ARGV[5], tasks)
return lasting(tasks, function() return ARGV[2] end)
