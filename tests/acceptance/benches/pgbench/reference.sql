-- Tables and functions of the references, in a separate database created by the service's migrations: the same tables, keys,
-- indexes and partners, without background work. Everything is numbered: a quote has a position, and the rows that follow
-- from it have ids derived from it and in its order, as the service's ids are in the order of time.

CREATE FUNCTION reference_id(place bigint, kind text) RETURNS uuid LANGUAGE sql AS $$
    SELECT (lpad(to_hex(place), 30, '0') || kind)::uuid
$$;

-- Quotes for later execution, as the service stores them, round robin over the partners.
CREATE FUNCTION reference_quotes(first bigint, many bigint, partners bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO quotes (mode, partner_id, id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional,
        dest_address, dest_network, created_at, expires_at)
    SELECT 'test', 'partner-' || place % partners, reference_id(place, '01'), 'EUR-USDT', 'on_ramp', 'tron',
        10000000000, 10790325000, '1.0790325', 25, 30, 10850000000,
        '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', 'tron', 0, 9000000000000
    FROM generate_series(first, first + many - 1) AS place
$$;

-- The money transaction: look up the idempotency key, claim the quote, check the velocity cap and raise the total, debit
-- the balance with a guard, insert trade, ledger entry, idempotent response and, if requested, event.
CREATE FUNCTION money(place bigint, whose text, with_event boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    this_quote constant uuid := reference_id(place, '01');
    this_trade constant uuid := reference_id(place, '02');
    this_key constant text := this_quote::text;
    moment constant bigint := extract(epoch FROM clock_timestamp()) * 1000;
    claimed record;
    debited record;
BEGIN
    PERFORM FROM idempotency_keys AS i
    WHERE i.mode = 'test' AND i.partner_id = whose AND i.route = 'POST /v1/pools/EUR-USDT/transact' AND i.key = this_key;
    IF FOUND THEN
        RAISE EXCEPTION 'the key % was used', this_key;
    END IF;

    UPDATE quotes AS q SET consumed_at = moment
    WHERE q.mode = 'test' AND q.partner_id = whose AND q.id = this_quote
        AND q.consumed_at IS NULL AND q.rejected_at IS NULL AND moment < q.expires_at
    RETURNING q.fiat, q.crypto, q.notional INTO STRICT claimed;

    UPDATE velocity AS v SET total = (v.total::numeric + claimed.notional)::text
    WHERE v.mode = 'test' AND v.partner_id = whose AND v.total::numeric + claimed.notional <= 900000000000000000;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the cap is reached';
    END IF;

    UPDATE accounts AS a SET available = a.available - claimed.fiat, sequence = a.sequence + 1
    WHERE a.mode = 'test' AND a.partner_id = whose AND a.asset = 'EUR' AND a.available >= claimed.fiat
    RETURNING a.available, a.sequence INTO STRICT debited;

    INSERT INTO trades (mode, partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps,
        notional, dest_address, dest_network, reserved, status, created_at)
    VALUES ('test', whose, this_trade, this_quote, 'EUR-USDT', 'on_ramp', 'tron', claimed.fiat, claimed.crypto, '1.0790325',
        25, 30, claimed.notional, '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', 'tron', claimed.fiat, 'reserved', moment);

    INSERT INTO ledger_entries (mode, partner_id, id, asset, debit, credit, amount, reason, account_sequence,
        balance_after, reference, trade_id, part, created_at)
    VALUES ('test', whose, reference_id(place, '03'), 'EUR', 'partner', 'reserved', claimed.fiat, 'buy_debit',
        debited.sequence, debited.available, this_key, this_trade, 'reserve', moment);

    INSERT INTO idempotency_keys (mode, partner_id, route, key, fingerprint, trade_id, created_at)
    VALUES ('test', whose, 'POST /v1/pools/EUR-USDT/transact', this_key, decode(repeat('00', 32), 'hex'), this_trade, moment);

    IF with_event THEN
        INSERT INTO events (mode, partner_id, id, service, type, object_id, body, created_at)
        VALUES ('test', whose, lpad(to_hex(place), 64, '0'), 'pools', 'pool.transaction.settled', this_trade::text,
            decode(repeat('78', 600), 'hex'), moment);
    END IF;
END
$$;

-- Running totals, which the service creates with a partner's first trade.
INSERT INTO velocity (mode, partner_id, total, floor)
SELECT mode, partner_id, '0', 0 FROM partners ON CONFLICT (mode, partner_id) DO NOTHING;
