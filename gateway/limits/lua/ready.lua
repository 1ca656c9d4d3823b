-- This instance has set its parts.
if not current() then return { STALE } end
if call('HDEL', prefix .. 'generation', 'wait:' .. instance) == 1 then
  call('HINCRBY', prefix .. 'generation', 'waiting', -1)
end
return { 0 }
