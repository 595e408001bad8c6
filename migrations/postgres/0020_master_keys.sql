-- Master keys by name. The first one derives the keys of marks, signatures and tokens; later ones have them sealed.
CREATE TABLE master_keys (
    fingerprint text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    state text COLLATE "C" NOT NULL DEFAULT 'current',
    derived bytea,
    CONSTRAINT master_keys_key PRIMARY KEY (fingerprint),
    CONSTRAINT master_keys_number UNIQUE (number),
    CONSTRAINT master_keys_fingerprint CHECK (fingerprint ~ '^[0-9a-f]{16}$'),
    CONSTRAINT master_keys_state CHECK (state IN ('current', 'older', 'retired')),
    CONSTRAINT master_keys_derived CHECK ((number = 1) = (derived IS NULL))
);

CREATE UNIQUE INDEX master_keys_current ON master_keys (state) WHERE state = 'current';

INSERT INTO master_keys (fingerprint, number, state)
SELECT master_key_fingerprint, 1, 'current' FROM installation;
