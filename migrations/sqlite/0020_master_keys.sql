-- Master keys by name. The first one derives the keys of marks, signatures and tokens; later ones have them sealed.
CREATE TABLE master_keys (
    fingerprint TEXT NOT NULL,
    number INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'current',
    derived BLOB,
    CONSTRAINT master_keys_key PRIMARY KEY (fingerprint),
    CONSTRAINT master_keys_number UNIQUE (number),
    CONSTRAINT master_keys_fingerprint CHECK (length(fingerprint) = 16 AND fingerprint NOT GLOB '*[^0-9a-f]*'),
    CONSTRAINT master_keys_state CHECK (state IN ('current', 'older', 'retired')),
    CONSTRAINT master_keys_derived CHECK ((number = 1) = (derived IS NULL))
) STRICT;

CREATE UNIQUE INDEX master_keys_current ON master_keys (state) WHERE state = 'current';

INSERT INTO master_keys (fingerprint, number, state)
SELECT master_key_fingerprint, 1, 'current' FROM installation;
