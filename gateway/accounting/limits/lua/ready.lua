-- This instance has set its parts.
if not current() then return { STALE } end
if redis.call('HDEL', key('generation'), 'wait:' .. instance) == 1 then
  redis.call('HINCRBY', key('generation'), 'waiting', -1)
end
return { 0 }
