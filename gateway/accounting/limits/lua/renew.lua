-- ARGV: lease in ms, call ids. Answers the positions (from 0) of those whose lease is gone.
if not current() then return { STALE } end
local now = time()
local expiry = num(now + tonumber(ARGV[FIRST]))
local reply = { 0, 0 }
for a = FIRST + 1, #ARGV do
  if redis.call('HEXISTS', key('calls'), ARGV[a]) == 1 then
    redis.call('ZADD', key('leases'), expiry, ARGV[a])
  else
    reply[#reply + 1] = a - FIRST - 1
  end
end
reply[2] = reap(now, 200)
return reply
