-- An instance joins, or rejoins after a flush or an outage.
-- ARGV: id for a new generation, anew (1: start one even if no other instance has done so since this one
-- disconnected), opening in ms, deadline in ms, fresh (1: this instance has never been in a generation), names of the
-- instances that it knows to be alive; those for which the previous one waits are added. Answers the generation's id.
--
-- A generation belongs to one server process: a replica that was promoted, or a server that was restarted from its files, may
-- have lost the last changes, whatever generation it returns to.
local now = time()
-- The first write: without memory Redis rejects it. After one that frees memory it would accept all others of this script, and the
-- next heartbeat would fail.
call('ZADD', BEATS, num(now), instance)
local GENERATION = prefix .. 'generation'
local newId, anew, openingMs, deadlineMs, fresh = ARGV[FIRST], ARGV[FIRST + 1], ARGV[FIRST + 2], ARGV[FIRST + 3], ARGV[FIRST + 4]
local state = call('HMGET', GENERATION, 'id', 'waiting', 'opens', 'deadline', 'server')
local id = state[1]
-- Without permission for INFO servers are not told apart.
local info = redis.pcall('INFO', 'server')
local server = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
if not id or (state[5] or '') ~= server or (anew == '1' and (generation == '' or id == generation)) then
  local names = id and now < tonumber(state[4]) and awaited() or {}
  for a = FIRST + 5, #ARGV do names[#names + 1] = ARGV[a] end
  id = newId
  call('DEL', GENERATION)
  local count = 0
  for _, name in ipairs(names) do count = count + call('HSET', GENERATION, 'wait:' .. name, '1') end
  call('HSET', GENERATION, 'id', id, 'since', num(now), 'opens', num(now + tonumber(openingMs)),
    'deadline', num(now + tonumber(deadlineMs)), 'waiting', num(count), 'fresh', fresh, 'server', server)
elseif (state[2] ~= '0' or now < tonumber(state[3])) and now < tonumber(state[4]) then
  if call('HSETNX', GENERATION, 'wait:' .. instance, '1') == 1 then call('HINCRBY', GENERATION, 'waiting', 1) end
end
-- An instance of another generation may bring totals older than those of that generation.
if generation ~= '' and generation ~= id then call('HSET', GENERATION, 'fresh', '0') end
call('HSET', GENERATION, 'session:' .. instance, session)
return { 0, id }
