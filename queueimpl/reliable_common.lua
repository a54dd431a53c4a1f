-- The code that all scripts of the queue "reliable" share. It is put in front of each of them.
--
-- KEYS[1]  waiting tasks by due time
-- KEYS[2]  claimed tasks by the end of their claim
-- KEYS[3]  id -> "attempts:receipt:due" for tasks that were delivered
-- KEYS[4]  dead letters by due time
-- KEYS[5]  the last receipt
-- KEYS[6]  journal: request -> what it took

-- claim_of returns the number of attempts, the last receipt and the due time of a
-- task that was delivered, and 0 for any other task.
local function claim_of(id)
  local text = redis.call('HGET', KEYS[3], id)
  if not text then
    return 0
  end
  local attempts, receipt, due = string.match(text, '^(%d+):(%d+):(.+)$')
  return tonumber(attempts), receipt, due
end

-- forget removes a task, wherever it is.
local function forget(id)
  redis.call('ZREM', KEYS[1], id)
  redis.call('ZREM', KEYS[2], id)
  redis.call('HDEL', KEYS[3], id)
  redis.call('ZREM', KEYS[4], id)
end

-- reclaim ends up to limit claims that have run out, and returns their number.
-- Each task waits again with its old due time, or becomes a dead letter if it has
-- had max_attempts attempts (0: no bound). Its last receipt stays valid until the
-- task is delivered again.
local function reclaim(limit, max_attempts)
  local late = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now), 'LIMIT', 0, limit)
  for _, id in ipairs(late) do
    local attempts, _, due = claim_of(id)
    redis.call('ZREM', KEYS[2], id)
    if max_attempts > 0 and attempts >= max_attempts then
      redis.call('ZADD', KEYS[4], due, id)
    else
      redis.call('ZADD', KEYS[1], due, id)
    end
  end
  return #late
end

