-- This instance stops: nobody needs to wait for it.
if not current() then return { STALE } end
call('ZREM', prefix .. 'beats', instance)
call('HDEL', prefix .. 'generation', 'session:' .. instance)
return { 0 }
