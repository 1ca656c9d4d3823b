-- ARGV: call id, tokens used, then for each counter: entity, window, pending sum of this instance.
if not current() then return { STALE } end
for a = FIRST + 2, #ARGV, 3 do
  local _, window = load(ARGV[a], ARGV[a + 1])
  assignPending(window, instance, tonumber(ARGV[a + 2]), nil)
end
drop(ARGV[FIRST], time(), tonumber(ARGV[FIRST + 1]))
store()
return { 0 }
