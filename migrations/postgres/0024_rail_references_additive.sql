-- What a rail says about a record besides its state.

-- When the rail asked for a poll while one was under way; the next one is then due at once.
ALTER TABLE rail_records ADD COLUMN woken_at bigint;
-- A notification names a record, and no partner.
CREATE INDEX rail_records_open ON rail_records (mode, id) WHERE status = 'processing';

-- The rail's reference of the movement, for the operator. Records that settled before this migration have none.
ALTER TABLE rail_records ADD COLUMN reference text
    CONSTRAINT rail_records_reference CHECK (reference IS NULL OR status = 'settled');
