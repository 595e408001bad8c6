-- What the serving role may do. The owner of the schema runs it after every `migrate`; running it again changes nothing.
--
-- `penstock_serve` reads everything, writes what the programs write, and cannot change or delete what has happened: the
-- ledger, deposits, events and the steps of trades are only ever added to. It is made without a login; the operator
-- gives it one: ALTER ROLE penstock_serve LOGIN PASSWORD '...'.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'penstock_serve') THEN
        CREATE ROLE penstock_serve NOLOGIN;
    END IF;
END
$$;

-- For statements outside a transaction; transactions set their own.
ALTER ROLE penstock_serve SET statement_timeout = '5s';
ALTER ROLE penstock_serve SET lock_timeout = '1s';
ALTER ROLE penstock_serve SET idle_in_transaction_session_timeout = '5s';

GRANT USAGE ON SCHEMA public TO penstock_serve;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO penstock_serve;

-- What has happened stays as it was.
GRANT INSERT ON ledger_entries, deposits, events, trade_transitions TO penstock_serve;

GRANT INSERT, UPDATE ON
    accounts, answers, api_keys, books, branding, commitments, config_version, customers, deliveries, gate_profiles,
    idempotency_keys, installation, partners, pools, pools_profiles, quote_previews, quotes, rail_records, session_tallies,
    sessions, signed_quotes, trades, transactions, velocity, velocity_window, webhook_endpoints, webhook_secrets
TO penstock_serve;

-- What the planner knows of tables that grow.
GRANT EXECUTE ON FUNCTION gather_statistics() TO penstock_serve;

-- Keys and previews are kept for a while; an endpoint's secrets are replaced as a whole.
GRANT DELETE ON answers, idempotency_keys, quote_previews, webhook_secrets TO penstock_serve;
