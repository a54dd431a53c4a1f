-- Adds ARGV[1] milliseconds to the time to live of every key that has one.
local cursor = '0'
repeat
  local page = redis.call('SCAN', cursor, 'COUNT', 1000)
  cursor = page[1]
  for _, key in ipairs(page[2]) do
    local left = redis.call('PTTL', key)
    if left > 0 then
      redis.call('PEXPIRE', key, left + tonumber(ARGV[1]))
    end
  end
until cursor == '0'
