-- ARGV: call id, tokens used, then for each counter: entity, window, pending sum of this instance.
if not current() then return { STALE } end
local now = time()
local callId, used = ARGV[FIRST], tonumber(ARGV[FIRST + 1])
local packed = redis.call('HGET', key('calls'), callId)
if packed then
  release(packed, now, used)
  redis.call('HDEL', key('calls'), callId)
  redis.call('ZREM', key('leases'), callId)
end
for a = FIRST + 2, #ARGV, 3 do
  assignPending(key('entity:' .. ARGV[a]), ARGV[a + 1], instance, tonumber(ARGV[a + 2]), nil)
end
return { 0 }
