-- Rights of the programs' two roles. The owner of the schema runs this file after every `migrate`. A second run changes
-- nothing.
--
-- `penstock_serve` is the role of the services. It reads everything and writes what partners do. It cannot change what the
-- operator provisions: partners, pools, entitlements, API keys, webhook endpoints, the installation.
-- `penstock_operate` is the role of `penstock`, the operator's command line. It can provision as well.
-- Neither can change or delete history: they can only add to the ledger, deposits, events and the steps of trades.
-- Both roles are created without a login. The operator adds it: ALTER ROLE penstock_serve LOGIN PASSWORD '...'.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'penstock_serve') THEN
        CREATE ROLE penstock_serve NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'penstock_operate') THEN
        CREATE ROLE penstock_operate NOLOGIN;
    END IF;
END
$$;

-- Limits of statements outside a transaction. Transactions set their own.
ALTER ROLE penstock_serve SET statement_timeout = '5s';
ALTER ROLE penstock_serve SET lock_timeout = '1s';
ALTER ROLE penstock_serve SET idle_in_transaction_session_timeout = '5s';
ALTER ROLE penstock_operate SET statement_timeout = '5s';
ALTER ROLE penstock_operate SET lock_timeout = '1s';
ALTER ROLE penstock_operate SET idle_in_transaction_session_timeout = '5s';

GRANT USAGE ON SCHEMA public TO penstock_serve, penstock_operate;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO penstock_serve, penstock_operate;

-- History: insert only.
GRANT INSERT ON ledger_entries, deposits, events, trade_transitions TO penstock_serve, penstock_operate;
-- The form in which references are compared is filled in for deposits of earlier versions, before another one is credited. It changes
-- nothing that was written, and `verify` compares it with the reference.
GRANT UPDATE (compared) ON deposits TO penstock_serve, penstock_operate;

-- Data that partners change.
GRANT INSERT, UPDATE ON
    accounts, answers, branding, clock_jump, commitments, customers, deliveries, idempotency_keys, key_uses, quote_previews,
    quote_sweeps, quotes, rail_records, recounts, session_tallies, sessions, signed_quotes, trades, transactions, velocity,
    velocity_window, verifications
TO penstock_serve, penstock_operate;

-- Data that the operator provisions. An earlier version of this file let services write it.
REVOKE INSERT, UPDATE, DELETE ON
    api_keys, books, config_version, deposit_claims, gate_profiles, installation, master_keys, partners, pools, pools_profiles,
    webhook_endpoints, webhook_secrets
FROM penstock_serve;
GRANT INSERT, UPDATE ON
    api_keys, books, config_version, deposit_claims, gate_profiles, installation, master_keys, partners, pools, pools_profiles,
    webhook_endpoints, webhook_secrets
TO penstock_operate;
-- A rotation of the master key encrypts event bodies again.
GRANT UPDATE (body) ON events TO penstock_operate;

-- A transaction that writes a partner's money takes the partner lock, the partner's row of `books`, and stores its instant there.
GRANT UPDATE ON books TO penstock_serve;
-- The first program that opens a database stores the fingerprint of the master key. That row is the current key, and only one
-- row can be current, so a service cannot add another.
GRANT INSERT ON installation TO penstock_serve;
GRANT INSERT (fingerprint, number) ON master_keys TO penstock_serve;
-- It also stores the mode of the installation, which no program changes.
GRANT INSERT ON installation_mode TO penstock_serve, penstock_operate;

-- Statistics of growing tables, for the planner.
GRANT EXECUTE ON FUNCTION gather_statistics() TO penstock_serve, penstock_operate;

-- Idempotency keys, stored responses, previews and quotes that were never executed or redeemed are deleted after a while. An
-- endpoint's secrets and a partner's deposit claims are replaced as a whole.
GRANT DELETE ON answers, idempotency_keys, quote_previews, quotes, signed_quotes TO penstock_serve, penstock_operate;
GRANT DELETE ON deposit_claims, webhook_secrets TO penstock_operate;
