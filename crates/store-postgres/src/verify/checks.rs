//! Checks that the schema has every rule of the migrations, and that every row keeps them. A row may break a `CHECK` constraint or
//! a reference that was dropped for a while or is not validated.

use kernel::StoreResult;
use sqlx::AssertSqlSafe;
use store_sql::verify::ReportBreach;

use super::Audited;
use crate::{errors, schema};

impl Audited<'_> {
    /// Reports each rule of the migrations that is missing from the schema.
    pub(super) async fn report_missing(&mut self, report: ReportBreach<'_>) -> StoreResult<()> {
        let rules: Vec<&str> = schema::rules().into_iter().collect();
        let missing: Vec<String> = sqlx::query_scalar(MISSING)
            .bind(rules)
            .fetch_all(&mut *self.0)
            .await
            .map_err(errors::statement)?;
        missing.into_iter().for_each(report);
        Ok(())
    }

    /// Reports the rows of each statement that `generator` builds from the catalogue.
    pub(super) async fn report_generated(
        &mut self,
        generator: &'static str,
        report: ReportBreach<'_>,
    ) -> StoreResult<()> {
        let statements: Vec<String> = sqlx::query_scalar(generator)
            .fetch_all(&mut *self.0)
            .await
            .map_err(errors::statement)?;
        for statement in statements {
            // The names and expressions come from the catalogue, not from a request.
            self.report_rows(AssertSqlSafe(statement), report).await?;
        }
        Ok(())
    }
}

const MISSING: &str = "SELECT 'the schema has no ' || n.name FROM unnest($1::text[]) AS n (name)
     WHERE NOT EXISTS (SELECT FROM pg_constraint AS c
                       WHERE c.conname = n.name AND c.connamespace = current_schema()::regnamespace)
       AND NOT EXISTS (SELECT FROM pg_class AS c
                       WHERE c.relname = n.name AND c.relkind = 'i' AND c.relnamespace = current_schema()::regnamespace)
     ORDER BY n.name COLLATE \"C\"";

/// Builds one statement for each table with `CHECK` constraints. It returns the rows that break one, with the constraint's name.
pub(super) const CHECKS: &str = "SELECT format(
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

/// Builds one statement for each reference. It returns the rows whose referenced row is missing.
pub(super) const REFERENCES: &str = "SELECT format(
         $$SELECT concat_ws('/', to_jsonb(c) ->> 'mode', to_jsonb(c) ->> 'partner_id') || %L
           FROM %I AS c
           WHERE (%s) IS NOT NULL AND NOT EXISTS (SELECT FROM %I AS p WHERE (%s) = (%s))$$,
         format(' in %s refers to no row of %s', r.relname, o.relname),
         r.relname, k.own, o.relname, k.their, k.own
     ) AS statement
     FROM pg_constraint AS c
     JOIN pg_class AS r ON r.oid = c.conrelid
     JOIN pg_class AS o ON o.oid = c.confrelid
     CROSS JOIN LATERAL (
         SELECT string_agg(format('c.%I', a.attname), ', ' ORDER BY n.place) AS own,
                string_agg(format('p.%I', b.attname), ', ' ORDER BY n.place) AS their
         FROM unnest(c.conkey, c.confkey) WITH ORDINALITY AS n (own, their, place)
         JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = n.own
         JOIN pg_attribute AS b ON b.attrelid = c.confrelid AND b.attnum = n.their
     ) AS k
     WHERE c.contype = 'f' AND r.relnamespace = current_schema()::regnamespace
     ORDER BY r.relname, c.conname";
