-- ARGV holds keys, each with the milliseconds that it had left: none has more now.
for i = 1, #ARGV, 2 do
  if redis.call('PTTL', ARGV[i]) > tonumber(ARGV[i + 1]) then
    redis.call('PEXPIRE', ARGV[i], ARGV[i + 1])
  end
end
