-- The one jump of the clock that waits for an operator, and the last instant up to which an operator accepted jumps.
-- Every process reads it when it starts, so that a restart accepts nothing.
CREATE TABLE clock_jump (
    id INTEGER NOT NULL CONSTRAINT clock_jump_key PRIMARY KEY,
    expected INTEGER,
    found INTEGER,
    accepted INTEGER NOT NULL,
    CONSTRAINT clock_jump_single CHECK (id = 1),
    CONSTRAINT clock_jump_both CHECK ((expected IS NULL) = (found IS NULL)),
    CONSTRAINT clock_jump_ahead CHECK (expected < found)
) STRICT;

INSERT INTO clock_jump (id, accepted) VALUES (1, 0);
