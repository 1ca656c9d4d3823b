-- ARGV: name of an instance that will not come back, keys of entities. Its pending sums go.
if not current() then return { STALE } end
local gone = ARGV[FIRST]
redis.call('ZREM', key('beats'), gone)
redis.call('HDEL', key('generation'), 'session:' .. gone)
if redis.call('HDEL', key('generation'), 'wait:' .. gone) == 1 then redis.call('HINCRBY', key('generation'), 'waiting', -1) end
for a = FIRST + 1, #ARGV do
  for _, field in ipairs(redis.call('HKEYS', ARGV[a])) do
    if string.sub(field, 1, 2) == 'b:' then assignPending(ARGV[a], string.sub(field, 3), gone, 0, 0) end
  end
end
return { 0 }
