-- ARGV: count of counters, (entity, window, pending sum of this instance) of each; then for each call: id, tokens used.
-- Calls of one instance mostly share payers: each of those is read and written once.
if not current() then return { STALE } end
local now = time()
local a = FIRST + 1
for _ = 1, tonumber(ARGV[FIRST]) do
  local _, window = load(ARGV[a], ARGV[a + 1])
  assignPending(window, instance, tonumber(ARGV[a + 2]), nil)
  a = a + 3
end
local ids = {}
for at = a, #ARGV, 2 do ids[#ids + 1] = ARGV[at] end
local settled = {}
for i, packed in ipairs(call('HMGET', CALLS, unpack(ids))) do
  local id = ids[i]
  if packed and not settled[id] then
    release(cmsgpack.unpack(packed), now, tonumber(ARGV[a + i * 2 - 1]))
    settled[id] = true
  end
end
store(now)
call('HDEL', CALLS, unpack(ids))
call('ZREM', LEASES, unpack(ids))
return { 0 }
