-- ARGV, for each call: id, tokens used, count of counters, then (entity, window, pending sum of this instance) of each.
-- Calls of one instance mostly share payers: each of those is read and written once.
if not current() then return { STALE } end
local now = time()
local a = FIRST
while a <= #ARGV do
  local count = tonumber(ARGV[a + 2])
  for i = a + 3, a + 2 + count * 3, 3 do
    local _, window = load(ARGV[i], ARGV[i + 1])
    assignPending(window, instance, tonumber(ARGV[i + 2]), nil)
  end
  drop(ARGV[a], now, tonumber(ARGV[a + 1]))
  a = a + 3 + count * 3
end
store()
return { 0 }
