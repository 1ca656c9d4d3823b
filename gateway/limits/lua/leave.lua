-- This instance stops: the others need not wait for it. ARGV: calls in its journal that are not in the ledger; with none, it
-- is removed from the list.
local STOPPED = 10000
if not current() then return { STALE } end
if ARGV[FIRST] == '0' then
  removeInstance(instance)
else
  noteUndrained(ARGV[FIRST])
  call('HDEL', prefix .. 'generation', 'session:' .. instance)
  call('ZADD', BEATS, num(time() - STOPPED), instance)
end
return { 0 }
