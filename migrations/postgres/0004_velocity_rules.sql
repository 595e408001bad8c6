-- Since when a partner's cap is what it is, and the window that caps are judged by: `verify` judges the trades made after
-- both. Each is the instant of the newest trade when it was set; a trade of that very instant is not judged.

ALTER TABLE pools_profiles ADD COLUMN velocity_cap_since bigint NOT NULL DEFAULT 0;

CREATE TABLE velocity_window (
    id smallint NOT NULL CONSTRAINT velocity_window_key PRIMARY KEY,
    millis bigint NOT NULL,
    since bigint NOT NULL,
    CONSTRAINT velocity_window_single CHECK (id = 1),
    CONSTRAINT velocity_window_span CHECK (millis > 0)
);
