-- Previews with a lock: what a session must agree with to use one, and the session that has. They are swept with the
-- answers, long after they have expired.
CREATE TABLE quote_previews (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    id TEXT NOT NULL,
    side TEXT NOT NULL,
    currency TEXT NOT NULL,
    asset TEXT NOT NULL,
    amount INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    session_id TEXT,
    used_at INTEGER,
    CONSTRAINT quote_previews_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT quote_previews_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT quote_previews_session FOREIGN KEY (mode, partner_id, session_id)
        REFERENCES sessions (mode, partner_id, id),
    CONSTRAINT quote_previews_one_of_a_session UNIQUE (mode, partner_id, session_id),
    CONSTRAINT quote_previews_id CHECK (length(id) = 24),
    CONSTRAINT quote_previews_side CHECK (side IN ('on_ramp', 'off_ramp')),
    CONSTRAINT quote_previews_amount CHECK (amount > 0),
    CONSTRAINT quote_previews_expiry CHECK (expires_at > created_at),
    CONSTRAINT quote_previews_used CHECK ((used_at IS NULL) = (session_id IS NULL)),
    CONSTRAINT quote_previews_used_in_time CHECK (used_at >= created_at AND used_at < expires_at)
) STRICT;

CREATE INDEX quote_previews_created_at ON quote_previews (created_at);
