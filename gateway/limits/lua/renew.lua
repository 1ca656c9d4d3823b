-- ARGV: lease in ms, call ids. Answers: reaped leases, then the positions (from 0) of the calls whose lease has expired.
if not current() then return { STALE } end
local now = time()
local expiry = num(now + tonumber(ARGV[FIRST]))
local reply = { 0, 0 }
for a = FIRST + 1, #ARGV do
  if call('HEXISTS', CALLS, ARGV[a]) == 1 then
    call('ZADD', LEASES, expiry, ARGV[a])
  else
    reply[#reply + 1] = a - FIRST - 1
  end
end
reply[2] = reap(now, 200)
store(now)
return reply
