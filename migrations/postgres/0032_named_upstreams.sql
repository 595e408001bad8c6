-- Each obligation names the upstream that holds it, and only that one is asked about it. A row from before this migration names none, so
-- none is asked about it until an operator configures a former rail with the name `unnamed`.
ALTER TABLE rail_records ADD COLUMN rail text COLLATE "C" NOT NULL DEFAULT 'unnamed';
ALTER TABLE verifications ADD COLUMN verifier text COLLATE "C";

UPDATE verifications SET verifier = 'unnamed' WHERE status = 'pending';

-- Until when the customer can pay; when the rail first answered that it knows the payment; why the rail gave the money back.
ALTER TABLE rail_records ADD COLUMN pay_until bigint;
ALTER TABLE rail_records ADD COLUMN acknowledged_at bigint;
ALTER TABLE rail_records ADD COLUMN failure_reason text COLLATE "C"
    CONSTRAINT rail_records_failure_reason CHECK (
        failure_reason IS NULL OR failure_code IS NOT NULL AND failure_reason IN ('amount_differs', 'expired', 'returned', 'refused')
    );

-- A payment that was asked about before may have begun, so it never begins again.
UPDATE rail_records SET acknowledged_at = created_at WHERE attempts > 0;

-- What the rail says has arrived, in units of 10^-8 of what the customer pays.
ALTER TABLE rail_records ADD COLUMN received bigint
    CONSTRAINT rail_records_received CHECK (received >= 0);
ALTER TABLE rail_records ADD COLUMN received_at bigint
    CONSTRAINT rail_records_received_at CHECK ((received_at IS NULL) = (received IS NULL));

-- What an operator must look at. It changes no state.
ALTER TABLE rail_records ADD COLUMN open_item text COLLATE "C"
    CONSTRAINT rail_records_open_item CHECK (open_item IN ('underpaid', 'overpaid', 'late', 'returned', 'retracted'));
ALTER TABLE rail_records ADD COLUMN open_item_at bigint
    CONSTRAINT rail_records_open_item_at CHECK ((open_item_at IS NULL) = (open_item IS NULL));
CREATE INDEX rail_records_open_items ON rail_records (mode, partner_id, id) WHERE open_item IS NOT NULL;

-- When the rail is asked about a record that has ended.
ALTER TABLE rail_records ADD COLUMN watch_at bigint
    CONSTRAINT rail_records_watch_at CHECK (watch_at IS NULL OR ended_at IS NOT NULL);

-- A notification names a record without its partner, in progress or ended.
CREATE INDEX rail_records_by_id ON rail_records (id, mode, kind);

-- The W3C `traceparent` of the request that made the row.
ALTER TABLE rail_records ADD COLUMN trace_parent text COLLATE "C";
ALTER TABLE verifications ADD COLUMN trace_parent text COLLATE "C";

-- What is due is read upstream by upstream, and there partner by partner.
DROP INDEX rail_records_due_of_partner;
DROP INDEX verifications_due_of_partner;
CREATE INDEX rail_records_due_of_rail ON rail_records (mode, rail, partner_id, ask_at) WHERE status = 'processing';
CREATE INDEX rail_records_watched ON rail_records (mode, rail, partner_id, watch_at) WHERE watch_at IS NOT NULL;
CREATE INDEX verifications_due_of_verifier ON verifications (mode, verifier, partner_id, ask_at) WHERE status = 'pending';
