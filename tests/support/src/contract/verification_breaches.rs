//! Planted breaches of verifications. The audit reports each under exactly its name.

use gate_core::session::SessionId;

use crate::contract::breaches::{Breach, CHECKED, update_of};
use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::draft;
use crate::contract::verifications::Verifications;
use crate::contract::world::World;

/// Sessions with a verification of every kind of one partner.
pub(crate) struct Rows {
    partner: String,
    required: SessionId,
    pending: SessionId,
    approved: SessionId,
    rejected: SessionId,
}

impl<F: GateFixture> World<F> {
    /// A partner with all these sessions.
    async fn verified(&self, name: &str) -> Rows {
        let gate = self.open_listening_gate(name).await;
        let all = Verifications::of(gate);
        let required = all.gate.opened("required", draft("10.61")).await;
        all.clone().paid(required).await.unwrap_err();
        let mut started = Vec::new();
        for (key, amount) in [("p", "10.63"), ("a", "10.61"), ("r", "10.62")] {
            let session = all.gate.opened(key, draft(amount)).await;
            all.started(session).await;
            started.push(session);
        }
        let [pending, approved, rejected] = started[..] else {
            panic!("{started:?}")
        };
        Rows {
            partner: name.to_owned(),
            required,
            pending,
            approved,
            rejected,
        }
    }
}

/// `UPDATE verifications SET change` for the verification of a session of the partner.
fn verification(rows: &Rows, change: &str, session: SessionId) -> String {
    let row = format!("session_id = '{}'", session.ulid());
    update_of(&rows.partner, "verifications", change, &row)
}

const fn breach(invariant: &'static str, sql: fn(&Rows) -> String) -> Breach<Rows> {
    Breach::new(invariant, sql)
}

pub(crate) const BREACHES: &[Breach<Rows>] = &[
    breach("verification-says-it-was-required", |rows| {
        verification(rows, "created_at = created_at - 1", rows.required)
    }),
    breach("verification-says-it-was-required", |rows| {
        verification(rows, "created_at = created_at - 1", rows.approved)
    }),
    breach("event-has-its-verification", |rows| {
        let (partner, id) = (&rows.partner, rows.pending.ulid());
        format!(
            "DELETE FROM verifications
             WHERE mode = 'test' AND partner_id = '{partner}' AND session_id = '{id}'"
        )
    }),
    breach("rows-can-be-read", |rows| {
        verification(rows, "reason = NULL", rows.rejected)
    })
    .with(CHECKED),
    breach("rows-can-be-read", |rows| {
        verification(rows, "ended_at = NULL", rows.approved)
    })
    .with(CHECKED),
    breach("database-is-whole", |rows| {
        verification(rows, "ended_at = created_at - 1", rows.rejected)
    }),
];

// rule: cli.verify
pub async fn every_verification_breach_is_reported_by_name(world: World<impl GateFixture>) {
    let victim = async |name: String| world.verified(&name).await;
    world.assert_found(BREACHES, victim).await;
}
