-- Checks one request against every window of its bucket, and counts it in all of them or in none. The caller prepends `now`.
-- KEYS[1] has the windows of the bucket: for each tier the time when the window opened, and the number of its requests.
-- ARGV[1] is '1' if an admitted request is counted. For each tier follow its field, its limit and its length in milliseconds.
-- Returns two numbers for each tier: the requests before this one, and the milliseconds until the window closes.
local windows, response, admitted = {}, {}, true
for at = 2, #ARGV, 3 do
  local field, limit, per = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local stored = redis.call('HMGET', KEYS[1], field .. ':opened', field .. ':used')
  local opened, used = tonumber(stored[1]), tonumber(stored[2])
  -- If the clock was set back, a window may have opened far in the future. Such a window counts as closed.
  if not (opened and used) or now - opened >= per or opened - now >= per then
    opened, used = now, 0
  end
  -- A smaller step back must not make a window longer.
  opened = math.min(opened, now)
  windows[#windows + 1] = { field = field, opened = opened, used = used, closes = opened + per - now }
  response[#response + 1] = { used, opened + per - now }
  admitted = admitted and used < limit
end
if admitted and ARGV[1] == '1' then
  local last = 0
  for _, window in ipairs(windows) do
    redis.call('HSET', KEYS[1], window.field .. ':opened', window.opened, window.field .. ':used', window.used + 1)
    last = math.max(last, window.closes)
  end
  if redis.call('PTTL', KEYS[1]) < last then
    redis.call('PEXPIRE', KEYS[1], last)
  end
end
return response
