-- ARGV: name of an instance that will not come back, keys of entities. Removes its pending sums.
if not current() then return { STALE } end
local gone, GENERATION = ARGV[FIRST], prefix .. 'generation'
removeInstance(gone)
if call('HDEL', GENERATION, 'wait:' .. gone) == 1 then call('HINCRBY', GENERATION, 'waiting', -1) end
for a = FIRST + 1, #ARGV do
  local fields = call('HGETALL', ARGV[a])
  for i = 1, #fields, 2 do
    if fields[i] ~= 'account' then
      local window = cmsgpack.unpack(fields[i + 1])
      assignPending(window, gone, 0, 0)
      if window.changed then
        call('ZADD', MOVED, num(time()), string.sub(ARGV[a], #prefix + #'entity:' + 1))
        window.changed = nil
        call('HSET', ARGV[a], fields[i], cmsgpack.pack(window))
      end
    end
  end
end
return { 0 }
