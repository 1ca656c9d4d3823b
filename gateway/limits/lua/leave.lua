-- This instance stops: the others need not wait for it.
if not current() then return { STALE } end
call('ZREM', prefix .. 'beats', instance)
call('HDEL', prefix .. 'generation', 'session:' .. instance)
return { 0 }
