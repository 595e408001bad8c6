-- Who takes the money of a partner's sessions, as customers see it. The operator sets each column.
ALTER TABLE gate_profiles ADD COLUMN legal_name TEXT;
ALTER TABLE gate_profiles ADD COLUMN support_url TEXT;
ALTER TABLE gate_profiles ADD COLUMN terms_url TEXT;
ALTER TABLE gate_profiles ADD COLUMN privacy_url TEXT;
