-- Since when a partner's cap is what it is, and the window that caps are judged by: `verify` judges the trades made after
-- both. Each is the instant of the newest trade when it was set; a trade of that very instant is not judged.

ALTER TABLE pools_profiles ADD COLUMN velocity_cap_since INTEGER NOT NULL DEFAULT 0;

UPDATE pools_profiles SET velocity_cap_since = coalesce((
    SELECT max(t.created_at) FROM trades AS t
    WHERE t.mode = pools_profiles.mode AND t.partner_id = pools_profiles.partner_id
), 0);

CREATE TABLE velocity_window (
    id INTEGER NOT NULL CONSTRAINT velocity_window_key PRIMARY KEY,
    millis INTEGER NOT NULL,
    since INTEGER NOT NULL,
    CONSTRAINT velocity_window_single CHECK (id = 1),
    CONSTRAINT velocity_window_span CHECK (millis > 0)
) STRICT;
