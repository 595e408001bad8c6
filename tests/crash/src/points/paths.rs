//! Which path reaches each crash point, and which points a run tries.

use instruments::failpoint::{RESPONSE_WRITE, Side};

use crate::programs::Served;

/// A path that reaches a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// A start of the service.
    Start,
    /// The service's own sweep, right after its start.
    Sweep,
    /// A credit by the operator.
    Credit,
    /// A key revocation by the operator.
    Revoke,
    /// Requests to the pools.
    Pools,
    /// Requests to the gate.
    Gate,
    /// Payments in widgets, through the sandbox's rail and its verification of users.
    Widget,
    /// Requests to the gate about live sessions.
    LiveGate,
    /// Payments at the gate: through the sandbox's rail, and through the providers of a live campaign.
    Rail,
    /// Requests to either service.
    Either,
}

impl Reach {
    /// Whether clients of the service reach points on this path.
    pub(super) fn is_load_of(self, served: Served) -> bool {
        match self {
            Self::Pools => served == Served::Pools,
            Self::Gate | Self::Widget | Self::Rail => served == Served::Gate,
            Self::Either => true,
            Self::Start | Self::Sweep | Self::Credit | Self::Revoke | Self::LiveGate => false,
        }
    }

    /// Whether only the gate has points on this path.
    pub(super) const fn is_of_gate(self) -> bool {
        matches!(
            self,
            Self::Gate | Self::Widget | Self::LiveGate | Self::Rail
        )
    }
}

/// Every step, by its path. A step is named where an adapter runs it; the commit of a transaction is a step named after it.
// `xtask/tests/failpoints.rs` compares this list with the adapters.
const STEPS: [(Reach, &[&str]); 10] = [
    (
        Reach::Start,
        &["migration.run", "migration.commit", START_COMMIT],
    ),
    (Reach::Sweep, &["sweep.delete", "idempotency_sweep.commit"]),
    (Reach::Credit, &["deposit.insert", "credit.commit"]),
    (Reach::Revoke, &["key.revoke", "key_revoke.commit"]),
    (
        Reach::Pools,
        &[
            "quote.insert",
            "quotes_open.commit",
            "quote.reject",
            "quote_reject.commit",
            "engine.hold",
            "engine.confirm",
            "engine.report",
            "transact.lock",
            "transact.load",
            "transact.decide",
            "quote.consume",
            "trade.insert",
            "ledger.insert",
            "balance.update",
            "idempotency.insert",
            "transact.commit",
            "trade_claim.commit",
            "trade_unclaim.commit",
            "trade.apply",
            "entry.post",
            "trade_apply.commit",
        ],
    ),
    (
        Reach::Either,
        &[
            "event.insert",
            "delivery.insert",
            "deliveries_claim.commit",
            "webhook.post",
            "deliveries_conclude.commit",
            RESPONSE_WRITE,
        ],
    ),
    (Reach::LiveGate, &["tally.put"]),
    (
        Reach::Rail,
        &[
            "rail.insert",
            "rail_create.commit",
            "rail.ask",
            "rail_claim.commit",
            "rail.end",
            "rail_apply.commit",
            "rail.watch",
            "rail_watch.commit",
            "payment_create.commit",
            "payment_cancel.commit",
            "session.apply",
            "transaction.insert",
            "transaction.end",
            "stored_response.put",
            "signed_quote.consume",
            "session_quote.commit",
        ],
    ),
    (
        Reach::Gate,
        &[
            "session.insert",
            "session_create.commit",
            "session_cancel.commit",
            "session_complete.commit",
            "session_fail.commit",
            "session_expire.commit",
            "branding.put",
            "branding_update.commit",
            "webhook_test.commit",
            "delivery_replay.commit",
            "preview.insert",
            "preview.use",
            "quote_preview.commit",
            "customer.insert",
            "customer_create.commit",
            "customer.put",
            "customer_update.commit",
            "customer_delete.commit",
            "signed_quote.insert",
            "signed_quote_lock.commit",
        ],
    ),
    (
        Reach::Widget,
        &[
            "session.count_token",
            "embed_bootstrap.commit",
            "signed_quote.supersede",
            "verification.insert",
            "verification_start.commit",
            "verification.put",
            "verification_open.commit",
            "verification_claim.commit",
            "verification_apply.commit",
            "payment_pretend.commit",
            "verification_pretend.commit",
            "rail.wake",
            "rail_wake.commit",
        ],
    ),
];

/// Delays a step by 25 ms.
pub(super) const DELAY: &str = "wait 25";

/// The first commit of the first start that finds its schema.
pub(super) const START_COMMIT: &str = "installation_begin.commit";

pub(super) fn reach_of(step: &str) -> Reach {
    let found = STEPS.iter().find(|(_, steps)| steps.contains(&step));
    found.map_or(Reach::Start, |(reach, _)| *reach)
}

/// Returns both points of each step on the accepted paths.
fn points_of(accepts: impl Fn(Reach) -> bool) -> Vec<(&'static str, String)> {
    let steps = STEPS.iter().filter(|(reach, _)| accepts(*reach));
    let steps = steps.flat_map(|(_, steps)| steps.iter().copied());
    let both = |step: &'static str| Side::BOTH.map(|side| (step, side.of(&step)));
    steps.flat_map(both).collect()
}

/// Which points a run tries, and on which database.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Chosen {
    /// Repetitions of each point.
    #[arg(long, default_value_t = 1)]
    pub(crate) repeat: u64,
    /// Only points of this step, each once at its end.
    #[arg(long)]
    pub(crate) step: Option<String>,
    /// Delays the points too, and measures how soon responses are as quick as before. The machine must be idle.
    #[arg(long)]
    pub(crate) delays: bool,
    /// The database.
    #[arg(long, value_enum, default_value_t = Database::Embedded)]
    pub(crate) store: Database,
    /// Only a part of the gate's run, on a database of its own.
    #[arg(long, value_enum, conflicts_with = "step")]
    pub(crate) part: Option<Part>,
}

/// A part of the gate's run. Together the parts try every point in every manner, as a run without parts does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// The process ends at the points outside of payments.
    Mixed,
    /// The process ends at the points of payments, while most operations are payments in widgets.
    Payments,
    /// The same with live payments through the provider.
    Live,
    /// The process ends after a delivery without a response. Then steps fail at every point.
    Failing,
}

impl Part {
    /// Whether the process ends at the points on a path.
    pub(super) const fn ends_at(self, reach: Reach) -> bool {
        match self {
            Self::Mixed => matches!(reach, Reach::Gate),
            Self::Payments => matches!(reach, Reach::Widget | Reach::Rail),
            Self::Live => matches!(reach, Reach::LiveGate | Reach::Rail),
            Self::Failing => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Database {
    Embedded,
    /// A private Postgres.
    Postgres,
}

impl Chosen {
    /// Every point once.
    pub(crate) const fn all(delays: bool, store: Database) -> Self {
        Self {
            repeat: 1,
            step: None,
            delays,
            store,
            part: None,
        }
    }

    /// A part of the gate's points, each once, without delays.
    pub(crate) const fn of_part(part: Part) -> Self {
        Self {
            repeat: 1,
            step: None,
            delays: false,
            store: Database::Embedded,
            part: Some(part),
        }
    }

    /// The manners of disturbing.
    pub(super) fn manners(&self) -> Vec<&'static str> {
        let failing = ["fail", "full", "panic"].into_iter();
        failing.chain(self.delays.then_some(DELAY)).collect()
    }

    /// Selects points of the steps on the accepted paths.
    pub(super) fn points(&self, accepts: impl Fn(Reach) -> bool) -> Vec<(&'static str, String)> {
        let mut all = points_of(accepts);
        all.retain(|(step, _)| {
            let named = self.step.as_ref().is_none_or(|name| name == step);
            named && (self.store == Database::Embedded || !is_sqlite_only(step))
        });
        all
    }
}

/// Steps that the Postgres store runs in one statement with others.
fn is_sqlite_only(step: &str) -> bool {
    matches!(
        step,
        "quote.consume" | "ledger.insert" | "balance.update" | "idempotency.insert"
    )
}

/// Steps of a request's own task or of its batch queue, where a panic is contained.
pub(super) fn is_of_handler(step: &str) -> bool {
    !matches!(
        step,
        "deliveries_claim.commit" | "webhook.post" | "deliveries_conclude.commit" | RESPONSE_WRITE
    )
}

/// Steps that write to the disk.
pub(super) fn writes_to_disk(step: &str) -> bool {
    !step.ends_with(".commit")
        && !matches!(
            step,
            "engine.hold"
                | "engine.confirm"
                | "engine.report"
                | "webhook.post"
                | "transact.decide"
                | RESPONSE_WRITE
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the points at which the process ends in each of these parts, sorted.
    fn ends_of(parts: &[Part]) -> Vec<String> {
        let all = Chosen::all(false, Database::Embedded);
        let of_part = |part: &Part| all.points(|reach| part.ends_at(reach));
        let ends = parts.iter().flat_map(of_part);
        let mut names: Vec<String> = ends.map(|(_, point)| point).collect();
        names.sort_unstable();
        names
    }

    fn named(accepts: impl Fn(Reach) -> bool) -> Vec<String> {
        let mut names: Vec<String> = points_of(accepts)
            .into_iter()
            .map(|(_, point)| point)
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn parts_end_gate_once_at_each_of_its_points() {
        let of_sandbox = [Part::Mixed, Part::Payments, Part::Failing];
        let by_clients = |reach: Reach| reach.is_of_gate() && reach.is_load_of(Served::Gate);
        assert_eq!(ends_of(&of_sandbox), named(by_clients));
        let of_live = |reach| matches!(reach, Reach::LiveGate | Reach::Rail);
        assert_eq!(ends_of(&[Part::Live]), named(of_live));
    }
}
