-- The same in the usual way: BEGIN, nine statements, COMMIT, one exchange with the server for each.
\set place :first + :done * :connections + :client_id
\set done :done + 1
\set partner :place % :partners
BEGIN;
SELECT fingerprint, trade_id FROM idempotency_keys
WHERE mode = 'test' AND partner_id = 'partner-' || :partner AND route = 'POST /v1/pools/EUR-USDT/transact'
    AND key = reference_id(:place, '01')::text;
UPDATE quotes SET consumed_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint
WHERE mode = 'test' AND partner_id = 'partner-' || :partner AND id = reference_id(:place, '01')
    AND consumed_at IS NULL AND rejected_at IS NULL AND extract(epoch FROM clock_timestamp()) * 1000 < expires_at
RETURNING fiat, crypto, notional, consumed_at AS moment \gset
SELECT total FROM velocity WHERE mode = 'test' AND partner_id = 'partner-' || :partner FOR UPDATE;
UPDATE velocity SET total = (total::numeric + :notional)::text
WHERE mode = 'test' AND partner_id = 'partner-' || :partner AND total::numeric + :notional <= 900000000000000000;
UPDATE accounts SET available = available - :fiat, sequence = sequence + 1
WHERE mode = 'test' AND partner_id = 'partner-' || :partner AND asset = 'EUR' AND available >= :fiat
RETURNING available, sequence \gset
INSERT INTO trades (mode, partner_id, id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps,
    notional, dest_address, dest_network, reserved, status, created_at)
VALUES ('test', 'partner-' || :partner, reference_id(:place, '02'), reference_id(:place, '01'), 'EUR-USDT', 'on_ramp',
    'tron', :fiat, :crypto, '1.0790325', 25, 30, :notional, '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', 'tron', :fiat,
    'reserved', :moment);
INSERT INTO ledger_entries (mode, partner_id, id, asset, debit, credit, amount, reason, account_sequence,
    balance_after, reference, trade_id, part, created_at)
VALUES ('test', 'partner-' || :partner, reference_id(:place, '03'), 'EUR', 'partner', 'reserved', :fiat, 'buy_debit',
    :sequence, :available, reference_id(:place, '01')::text, reference_id(:place, '02'), 'reserve', :moment);
INSERT INTO idempotency_keys (mode, partner_id, route, key, fingerprint, trade_id, created_at)
VALUES ('test', 'partner-' || :partner, 'POST /v1/pools/EUR-USDT/transact', reference_id(:place, '01')::text,
    decode(repeat('00', 32), 'hex'), reference_id(:place, '02'), :moment);
INSERT INTO events (mode, partner_id, id, service, type, object_id, body, created_at)
VALUES ('test', 'partner-' || :partner, lpad(to_hex(:place::bigint), 64, '0'), 'pools', 'pool.transaction.settled',
    reference_id(:place, '02')::text, decode(repeat('78', 600), 'hex'), :moment);
COMMIT;
