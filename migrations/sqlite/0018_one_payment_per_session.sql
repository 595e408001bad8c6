-- A session has at most one payment in progress or settled. Signatures of quotes name the installation. Partners may have a limit of
-- their own for creating sessions.

CREATE INDEX rail_records_of_session ON rail_records (mode, partner_id, session_id);

-- 1 for payments made before this rule that break it: further payments of one session, and payments of a session that had ended.
ALTER TABLE rail_records ADD COLUMN predates_rule INTEGER NOT NULL DEFAULT 0
    CONSTRAINT rail_records_predates_rule CHECK (predates_rule IN (0, 1));
UPDATE rail_records SET predates_rule = 1
WHERE status IN ('processing', 'settled')
  AND (EXISTS (
           SELECT 1 FROM rail_records AS other
           WHERE other.mode = rail_records.mode AND other.partner_id = rail_records.partner_id
             AND other.session_id = rail_records.session_id AND other.id <> rail_records.id
             AND other.status IN ('processing', 'settled'))
       OR EXISTS (
           SELECT 1 FROM sessions AS s
           WHERE s.mode = rail_records.mode AND s.partner_id = rail_records.partner_id AND s.id = rail_records.session_id
             AND s.status <> 'open' AND s.transaction_id IS NOT rail_records.transaction_id));
CREATE UNIQUE INDEX rail_records_session_once ON rail_records (mode, partner_id, session_id)
    WHERE status IN ('processing', 'settled') AND predates_rule = 0;

-- A payment that was in progress at `expires_at` completes its session later. Every other end keeps its bound. SQLite drops a CHECK
-- only in its text; no row changes.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql,
    'CONSTRAINT sessions_completed_in_time CHECK (completed_at >= created_at AND completed_at < expires_at)',
    'CONSTRAINT sessions_completed_in_time CHECK (completed_at >= created_at)')
WHERE type = 'table' AND name = 'sessions';
PRAGMA writable_schema = RESET;

-- Names this installation for ever. It stays with the database when that is copied or restored.
CREATE TABLE installation_identity (
    id INTEGER NOT NULL CONSTRAINT installation_identity_key PRIMARY KEY,
    identity TEXT NOT NULL,
    CONSTRAINT installation_identity_single CHECK (id = 1),
    CONSTRAINT installation_identity_form CHECK (length(identity) = 32)
) STRICT;
INSERT INTO installation_identity (id, identity) VALUES (1, lower(hex(randomblob(16))));

-- `100/60s`; NULL: the limit of the service.
ALTER TABLE gate_profiles ADD COLUMN create_session_limit TEXT;
