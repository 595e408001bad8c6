-- The newest page of a partner's trades: 50 rows, and one that shows whether there are more.
SELECT id, quote_id, pool, side, network, fiat, crypto, rate, spread_bps, fee_bps, notional, dest_address, dest_network,
    reserved, status, created_at, settled_at, fill, released_at, failed_at, returned_at, attempts, lease_token, lease_until
FROM trades WHERE mode = 'test' AND partner_id = 'partner-0'
ORDER BY created_at DESC, id DESC LIMIT 51;
