-- The planner knows of a table what was last gathered about it. The server gathers once a minute at best, and forgets that it should
-- when it ends without a shutdown. Until then every key that begins with (mode, partner_id) looks as good as another, and a row
-- is found by reading all of its partner's: a queue that grew meanwhile takes longer to read than a statement may.
--
-- Only the owner may gather. So that the serving role can ask for it, this is the owner's: it looks at the tables that
-- have grown fourfold since they were last looked at, which is none, nearly always.
CREATE FUNCTION gather_statistics() RETURNS bigint
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    grown regclass;
    gathered bigint := 0;
BEGIN
    FOR grown IN
        SELECT c.oid
        FROM pg_class AS c
        WHERE c.relkind = 'r'
          AND c.relnamespace = (SELECT p.pronamespace FROM pg_proc AS p WHERE p.proname = 'gather_statistics')
          AND pg_relation_size(c.oid) > 4 * current_setting('block_size')::bigint * greatest(c.relpages, 1)
        ORDER BY c.relname
    LOOP
        BEGIN
            EXECUTE format('ANALYZE %s', grown);
            gathered := gathered + 1;
        EXCEPTION
            -- Another replica gathers already.
            WHEN lock_not_available THEN NULL;
        END;
    END LOOP;
    RETURN gathered;
END
$$;

REVOKE ALL ON FUNCTION gather_statistics() FROM PUBLIC;
