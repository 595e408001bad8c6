//! The CHECKs of the schema, asked of every row: one that was left out for a while, or is not
//! validated, may be broken by rows that are there.

use kernel::StoreError;
use sqlx::{AssertSqlSafe, Row as _};

use super::{Breaches, Work, text};
use crate::errors;

impl Work<'_> {
    /// Each table is gone through once, with all of its CHECKs.
    pub(super) async fn checks(&mut self) -> Result<(), StoreError> {
        let name = "database-is-whole";
        let mut breaches = Breaches::default();
        let rows = sqlx::query(CHECKED)
            .fetch_all(&mut *self.conn)
            .await
            .map_err(errors::statement)?;
        for row in &rows {
            // The names and expressions are the catalogue's own.
            let statement = AssertSqlSafe(text(row, "statement")?);
            self.each(name, statement, |row| {
                let broken: String = row.try_get(0).map_err(errors::statement)?;
                breaches.add(|| broken);
                Ok(())
            })
            .await?;
        }
        self.found(name, breaches);
        Ok(())
    }
}

/// One statement for each table that has CHECKs: its rows that break one, with the CHECK's name.
const CHECKED: &str = "SELECT format(
         $$SELECT concat_ws(' ', %L, concat_ws('/', to_jsonb(t) ->> 'mode', to_jsonb(t) ->> 'partner_id',
                            coalesce(to_jsonb(t) ->> 'id', to_jsonb(t) ->> 'asset')), 'breaks', b.broken)
           FROM %I AS t CROSS JOIN LATERAL unnest(array_remove(ARRAY[%s], NULL)) AS b (broken)$$,
         r.relname, r.relname,
         string_agg(format('CASE WHEN (%s) IS FALSE THEN %L::text END', pg_get_expr(c.conbin, c.conrelid), c.conname),
                    ', ' ORDER BY c.conname)
     ) AS statement
     FROM pg_constraint AS c
     JOIN pg_class AS r ON r.oid = c.conrelid
     WHERE c.contype = 'c' AND r.relnamespace = current_schema()::regnamespace
     GROUP BY r.relname ORDER BY r.relname";
