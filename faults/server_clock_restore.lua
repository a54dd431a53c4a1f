-- Makes sure that no key lives longer than before. ARGV holds keys, each followed
-- by the milliseconds that it had left.
for i = 1, #ARGV, 2 do
  if redis.call('PTTL', ARGV[i]) > tonumber(ARGV[i + 1]) then
    redis.call('PEXPIRE', ARGV[i], ARGV[i + 1])
  end
end
