-- This instance stops: nobody needs to wait for it.
if not current() then return { STALE } end
redis.call('ZREM', key('beats'), instance)
redis.call('HDEL', key('generation'), 'session:' .. instance)
return { 0 }
