-- Swaps: quotes of one asset for another, and the payments that redeem them.

-- What the user sends in a swap, which belongs to a session and has no method. Every other quote has a method and no source. The rows
-- that are there keep the stricter rules, so nothing is read.
ALTER TABLE signed_quotes
    ADD COLUMN source_asset text,
    ADD COLUMN source_scale smallint,
    ADD COLUMN source_network text,
    ADD COLUMN source_amount bigint,
    ALTER COLUMN payment_method DROP NOT NULL,
    ADD CONSTRAINT signed_quotes_source_scale CHECK (source_scale BETWEEN 0 AND 8) NOT VALID,
    ADD CONSTRAINT signed_quotes_source CHECK (
        side = 'swap' AND session_id IS NOT NULL AND payment_method IS NULL AND source_asset IS NOT NULL
            AND source_asset <> asset AND source_scale IS NOT NULL AND source_network IS NOT NULL
            AND source_amount IS NOT NULL AND source_amount > 0
        OR side <> 'swap' AND payment_method IS NOT NULL AND source_asset IS NULL AND source_scale IS NULL
            AND source_network IS NULL AND source_amount IS NULL
    ) NOT VALID,
    DROP CONSTRAINT signed_quotes_side,
    ADD CONSTRAINT signed_quotes_side CHECK (side IN ('on_ramp', 'off_ramp', 'swap')) NOT VALID;

-- Only the widget makes swaps.
ALTER TABLE rail_records
    DROP CONSTRAINT rail_records_kind,
    ADD CONSTRAINT rail_records_kind CHECK (kind IN ('pay_in', 'pay_out') OR kind = 'swap' AND hosted) NOT VALID;
