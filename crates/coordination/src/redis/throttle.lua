-- Judges and counts one request in every window of its bucket, at once. `now` stands before this text.
-- KEYS[1] holds the bucket's windows: for each tier when it was opened, and the requests in it.
-- ARGV[1] is '1' where an admitted request is counted. Three words a tier follow: its field, its limit, its length in milliseconds.
-- Answers with two numbers a tier: the requests before this one, and the milliseconds until the window closes.
local windows, answer, admitted = {}, {}, true
for at = 2, #ARGV, 3 do
  local field, limit, per = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local kept = redis.call('HMGET', KEYS[1], field .. ':opened', field .. ':used')
  local opened, used = tonumber(kept[1]), tonumber(kept[2])
  -- A window that a set-back clock puts far into the future counts as closed.
  if not (opened and used) or now - opened >= per or opened - now >= per then
    opened, used = now, 0
  end
  -- A clock set back must not stretch a window over the hours it was set back by.
  opened = math.min(opened, now)
  windows[#windows + 1] = { field = field, opened = opened, used = used, closes = opened + per - now }
  answer[#answer + 1] = { used, opened + per - now }
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
return answer
