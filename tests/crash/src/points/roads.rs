//! Which path reaches each crash point, and which points a run tries.

use instruments::failpoint::{Side, Step};

use crate::programs::Served;

/// A path that reaches a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Road {
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
    /// Requests to the gate about live sessions.
    LiveGate,
    /// Requests to either service.
    Either,
}

impl Road {
    /// Whether clients of the service reach points on this path.
    pub(super) fn is_load_of(self, served: Served) -> bool {
        match self {
            Self::Pools => served == Served::Pools,
            Self::Gate => served == Served::Gate,
            Self::Either => true,
            Self::Start | Self::Sweep | Self::Credit | Self::Revoke | Self::LiveGate => false,
        }
    }
}

pub(super) const fn road_to(step: Step) -> Road {
    match step {
        Step::MigrationRun | Step::MigrationCommit | Step::OtherCommit => Road::Start,
        Step::SweepDelete | Step::SweepCommit => Road::Sweep,
        Step::DepositInsert | Step::CreditCommit => Road::Credit,
        Step::KeyRevoke | Step::KeyRevokeCommit => Road::Revoke,
        Step::QuoteInsert
        | Step::QuoteCommit
        | Step::QuoteReject
        | Step::RejectCommit
        | Step::EngineHold
        | Step::EngineConfirm
        | Step::EngineReport
        | Step::TransactLock
        | Step::TransactLoad
        | Step::TransactChecks
        | Step::QuoteConsume
        | Step::TradeInsert
        | Step::LedgerInsert
        | Step::BalanceUpdate
        | Step::IdempotencyInsert
        | Step::TransactCommit
        | Step::PollClaimCommit
        | Step::PollUnclaimCommit
        | Step::TradeApply
        | Step::EntryPost
        | Step::PollApplyCommit => Road::Pools,
        Step::EventInsert
        | Step::DeliveryInsert
        | Step::DeliveryClaimCommit
        | Step::WebhookPost
        | Step::DeliveryConcludeCommit
        | Step::AnswerWrite => Road::Either,
        Step::TallyPut => Road::LiveGate,
        Step::SessionInsert
        | Step::SessionApply
        | Step::TransactionInsert
        | Step::BrandingPut
        | Step::AnswerPut
        | Step::SessionCommit
        | Step::ActCommit
        | Step::ExpiryCommit
        | Step::BrandingCommit
        | Step::TestEventCommit
        | Step::ReplayCommit
        | Step::TransactionEnd
        | Step::PreviewInsert
        | Step::PreviewUse
        | Step::PreviewCommit
        | Step::CustomerInsert
        | Step::CustomerPut
        | Step::CustomerCommit
        | Step::SignedQuoteInsert
        | Step::SignedQuoteConsume
        | Step::SignedQuoteCommit
        | Step::RailInsert
        | Step::RedemptionCommit
        | Step::RailAsk
        | Step::RailClaimCommit
        | Step::RailApply
        | Step::RailApplyCommit => Road::Gate,
    }
}

/// Returns both points of each step on the accepted paths.
fn points_of(roads: impl Fn(Road) -> bool) -> Vec<(Step, String)> {
    let sides = [Side::Before, Side::After];
    let both = move |step: Step| sides.map(|side| (step, step.point(side)));
    let steps = Step::ALL.into_iter().filter(|step| roads(road_to(*step)));
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
    /// Selects one point of N; the seed chooses which.
    #[arg(long, default_value_t = 1)]
    pub(crate) part: u64,
    /// The database.
    #[arg(long, value_enum, default_value_t = Database::Embedded)]
    pub(crate) store: Database,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Database {
    Embedded,
    /// A private Postgres.
    Postgres,
}

impl Chosen {
    pub(crate) const fn one_in(part: u64, store: Database) -> Self {
        Self {
            repeat: 1,
            step: None,
            part,
            store,
        }
    }

    /// Selects a part of the items.
    pub(super) fn of<T>(&self, all: Vec<T>, seed: u64) -> Vec<T> {
        let part = self.part.max(1);
        let turns = all.into_iter().zip(seed..);
        let chosen = turns.filter(|(_, turn)| turn.is_multiple_of(part));
        chosen.map(|(one, _)| one).collect()
    }

    /// Selects at least one manner of disturbing.
    pub(super) fn manners(&self, seed: u64) -> Vec<&'static str> {
        let all = ["fail", "full", "panic", "wait 25"];
        let chosen = self.of(all.to_vec(), seed);
        match chosen.is_empty() {
            true => all
                .into_iter()
                .cycle()
                .skip(seed as usize % all.len())
                .take(1)
                .collect(),
            false => chosen,
        }
    }

    /// Selects points of the steps on the accepted paths.
    pub(super) fn points(&self, roads: impl Fn(Road) -> bool, seed: u64) -> Vec<(Step, String)> {
        let mut all = points_of(roads);
        all.retain(|(step, _)| {
            let named = self
                .step
                .as_ref()
                .is_none_or(|name| *name == format!("{step:?}"));
            named && (self.store == Database::Embedded || !is_sqlite_only(*step))
        });
        self.of(all, seed)
    }
}

/// Steps that the Postgres store runs in one statement with others.
const fn is_sqlite_only(step: Step) -> bool {
    matches!(
        step,
        Step::QuoteConsume | Step::LedgerInsert | Step::BalanceUpdate | Step::IdempotencyInsert
    )
}

/// Steps of a request's own task or of its batch queue, where a panic is contained.
pub(super) fn is_of_handler(step: Step) -> bool {
    !matches!(
        step,
        Step::DeliveryClaimCommit
            | Step::WebhookPost
            | Step::DeliveryConcludeCommit
            | Step::AnswerWrite
    )
}

/// Steps that write to the disk.
pub(super) fn writes_to_disk(step: Step) -> bool {
    !step.is_commit()
        && !matches!(
            step,
            Step::EngineHold
                | Step::EngineConfirm
                | Step::EngineReport
                | Step::WebhookPost
                | Step::AnswerWrite
                | Step::TransactChecks
        )
}
