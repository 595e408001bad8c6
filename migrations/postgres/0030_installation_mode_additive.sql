-- The mode of the installation, test or live. The first program that knows the mode stores it, and no program changes it.
CREATE TABLE installation_mode (
    id smallint NOT NULL CONSTRAINT installation_mode_key PRIMARY KEY,
    mode text NOT NULL,
    CONSTRAINT installation_mode_single CHECK (id = 1),
    CONSTRAINT installation_mode_known CHECK (mode IN ('test', 'live'))
);
