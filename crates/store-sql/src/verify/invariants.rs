//! The invariants that a statement can check. The statement of an invariant finds the rows that break it.
//!
//! Most statements have one text for both engines. The others are macros over the engine's name, because Postgres stores ids as
//! `uuid` and builds the names of objects once, before it joins them with events.

pub(super) mod gate;
pub(super) mod pools;
pub(super) mod rails;
pub(super) mod verifications;

use kernel::StoreResult;

use super::named;
use crate::{Row, Statement};

/// An invariant with the statement that finds its breaches.
#[derive(Debug)]
pub(super) struct Invariant {
    pub(super) name: &'static str,
    /// The entity's name in breaches. Without it, the column `breach` is the whole text.
    entity: Option<&'static str>,
    pub(super) breaches: &'static Statement,
}

impl Invariant {
    /// The statement selects the rows by `mode`, `partner_id` and `id`, with the rest of the text as `breach`.
    const fn of_rows(
        name: &'static str,
        entity: &'static str,
        breaches: &'static Statement,
    ) -> Self {
        Self {
            name,
            entity: Some(entity),
            breaches,
        }
    }

    /// The statement selects whole texts as `breach`.
    const fn of_texts(name: &'static str, breaches: &'static Statement) -> Self {
        Self {
            name,
            entity: None,
            breaches,
        }
    }

    /// Describes a breach.
    pub(super) fn text(&self, row: &dyn Row) -> StoreResult<String> {
        let breach = row.text("breach")?;
        match self.entity {
            Some(entity) => Ok(format!("{} {breach}", named(row, entity)?)),
            None => Ok(breach.to_owned()),
        }
    }
}

/// Every invariant, in the order of the report.
pub(super) fn all() -> impl Iterator<Item = &'static Invariant> {
    let of_gate = gate::INVARIANTS.iter().chain(rails::INVARIANTS);
    let of_gate = of_gate.chain(verifications::INVARIANTS);
    pools::INVARIANTS.iter().chain(of_gate)
}

/// A statement whose text is a macro over the engine's name.
macro_rules! per_engine {
    ($table:literal, $text:ident) => {
        $crate::Statement::per_engine(
            $table,
            $crate::Sql {
                sqlite: $text!(sqlite),
                postgres: $text!(postgres),
            },
        )
    };
}

/// An id as text.
macro_rules! ulid {
    (sqlite, $id:literal) => {
        $id
    };
    (postgres, $id:literal) => {
        concat!("ulid(", $id, ")")
    };
}

/// The rows of a table with their names in events. `MATERIALIZED` makes Postgres build each name once and not for each event.
macro_rules! objects {
    ($engine:ident, $alias:literal, $table:literal, $($prefix:literal, $id:literal => $name:literal),+) => {
        concat!(
            $alias, " AS ", objects!($engine), " (SELECT *",
            $(", ", $prefix, " || mode || '_' || ", ulid!($engine, $id), " AS ", $name,)+
            " FROM ", $table, ")"
        )
    };
    (sqlite) => {
        "NOT MATERIALIZED"
    };
    (postgres) => {
        "MATERIALIZED"
    };
}

/// SQLite looks up the row of an event's object by the id at the end of the object's name.
macro_rules! and_by_id {
    (sqlite, $alias:literal) => {
        concat!(" AND ", $alias, ".id = substr(e.object_id, -26)")
    };
    (postgres, $alias:literal) => {
        ""
    };
}

macro_rules! starts_with {
    (sqlite, $text:literal, $start:literal) => {
        concat!("instr(", $text, ", ", $start, ") = 1")
    };
    (postgres, $text:literal, $start:literal) => {
        concat!("starts_with(", $text, ", ", $start, ")")
    };
}

use {and_by_id, objects, per_engine, starts_with, ulid};
