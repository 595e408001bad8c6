-- A session's tokens are counted, and quotes of the widget that were not redeemed are deleted after the end of their session.

-- How many embed tokens were made for the session. Each token carries its number, and only the newest ten are valid.
ALTER TABLE sessions ADD COLUMN tokens_made bigint NOT NULL DEFAULT 0
    CONSTRAINT sessions_tokens_made CHECK (tokens_made >= 0);

-- When the unused quotes of an ended session had been deleted. Sessions that ended before this migration are due too.
ALTER TABLE sessions ADD COLUMN quotes_deleted_at bigint
    CONSTRAINT sessions_quotes_deleted CHECK (quotes_deleted_at IS NULL OR status <> 'open');
CREATE INDEX sessions_quotes_due ON sessions (mode, partner_id, expires_at)
    WHERE status <> 'open' AND quotes_deleted_at IS NULL;
-- Said by IS NULL, this index would also suit the statement that supersedes quotes. That statement must not read the quotes that were
-- superseded before.
CREATE INDEX signed_quotes_unused ON signed_quotes (mode, partner_id, session_id)
    WHERE session_id IS NOT NULL AND coalesce(consumed_at, 0) = 0;
