//! The list of all steps.

/// A step that a crash must not leave half done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Updates the schema.
    MigrationRun,
    /// Commits the schema.
    MigrationCommit,
    /// Inserts quotes.
    QuoteInsert,
    /// Commits quotes.
    QuoteCommit,
    /// Rejects a quote.
    QuoteReject,
    /// Commits a rejection.
    RejectCommit,
    /// Asks the engine to hold.
    EngineHold,
    /// Confirms a hold at the engine.
    EngineConfirm,
    /// Asks the engine for the report of a trade.
    EngineReport,
    /// Takes the write lock for a batch of transacts.
    TransactLock,
    /// Loads the batch state.
    TransactLoad,
    /// Decides the commands of the batch.
    TransactChecks,
    /// Marks quotes as consumed.
    QuoteConsume,
    /// Inserts trades.
    TradeInsert,
    /// Inserts the ledger entries of trades.
    LedgerInsert,
    /// Updates balances.
    BalanceUpdate,
    /// Inserts idempotency records.
    IdempotencyInsert,
    /// Commits the batch.
    TransactCommit,
    /// Commits a poll's lease.
    PollClaimCommit,
    /// Commits the end of a lease after a poll without a result.
    PollUnclaimCommit,
    /// Changes a trade's state under the lease's token.
    TradeApply,
    /// Inserts the ledger entry of a poll or a credit.
    EntryPost,
    /// Inserts an event.
    EventInsert,
    /// Inserts the delivery of an event.
    DeliveryInsert,
    /// Commits the result of a poll.
    PollApplyCommit,
    /// Commits the claim of deliveries.
    DeliveryClaimCommit,
    /// Posts an event. The points are before the first byte and after the response's status.
    WebhookPost,
    /// Commits the outcomes of attempts.
    DeliveryConcludeCommit,
    /// Deletes old idempotency records.
    SweepDelete,
    /// Commits a sweep.
    SweepCommit,
    /// Revokes a key.
    KeyRevoke,
    /// Commits a revocation.
    KeyRevokeCommit,
    /// Inserts a deposit.
    DepositInsert,
    /// Commits a credit.
    CreditCommit,
    /// Inserts a session.
    SessionInsert,
    /// Updates the month's tally of live sessions.
    TallyPut,
    /// Changes a session's state.
    SessionApply,
    /// Inserts a payment of the sandbox.
    TransactionInsert,
    /// Ends a payment that was in progress.
    TransactionEnd,
    /// Inserts a locked preview.
    PreviewInsert,
    /// Marks a preview as used by a session.
    PreviewUse,
    /// Inserts a customer.
    CustomerInsert,
    /// Updates or deletes a customer.
    CustomerPut,
    /// Inserts a signed quote.
    SignedQuoteInsert,
    /// Redeems a signed quote.
    SignedQuoteConsume,
    /// Inserts a pay-in or pay-out.
    RailInsert,
    /// Records when the rail is asked about a pay-in or pay-out.
    RailAsk,
    /// Applies the rail's report.
    RailApply,
    /// Updates the branding.
    BrandingPut,
    /// Inserts a stored response.
    AnswerPut,
    /// Commits the creation of a session.
    SessionCommit,
    /// Commits a cancel, or the sandbox's end of a session.
    ActCommit,
    /// Commits an expiry, in every use case that applies one.
    ExpiryCommit,
    /// Commits a change of branding.
    BrandingCommit,
    /// Commits a partner's test event.
    TestEventCommit,
    /// Commits that a delivery that was given up is queued again.
    ReplayCommit,
    /// Commits a preview.
    PreviewCommit,
    /// Commits the creation, change or deletion of a customer.
    CustomerCommit,
    /// Commits a signed quote.
    SignedQuoteCommit,
    /// Commits a redemption with its pay-in or pay-out.
    RedemptionCommit,
    /// Commits the lease for asking the rail.
    RailClaimCommit,
    /// Commits the rail's report.
    RailApplyCommit,
    /// Commits any other transaction of one command.
    OtherCommit,
    /// Writes a response. The points are before its first byte and after half of its bytes.
    AnswerWrite,
}

/// The side of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Before any part of the step.
    Before,
    /// After the whole step.
    After,
}

impl Side {
    /// The name of the point on this side of `name`.
    #[must_use]
    pub fn of(self, name: &str) -> String {
        let side = match self {
            Self::Before => "before",
            Self::After => "after",
        };
        format!("{name}.{side}")
    }
}

impl Step {
    /// All steps, in the order in which a trade and a session pass them.
    pub const ALL: [Self; 64] = [
        Self::MigrationRun,
        Self::MigrationCommit,
        Self::QuoteInsert,
        Self::QuoteCommit,
        Self::QuoteReject,
        Self::RejectCommit,
        Self::EngineHold,
        Self::EngineConfirm,
        Self::EngineReport,
        Self::TransactLock,
        Self::TransactLoad,
        Self::TransactChecks,
        Self::QuoteConsume,
        Self::TradeInsert,
        Self::LedgerInsert,
        Self::BalanceUpdate,
        Self::IdempotencyInsert,
        Self::TransactCommit,
        Self::PollClaimCommit,
        Self::PollUnclaimCommit,
        Self::TradeApply,
        Self::EntryPost,
        Self::EventInsert,
        Self::DeliveryInsert,
        Self::PollApplyCommit,
        Self::DeliveryClaimCommit,
        Self::WebhookPost,
        Self::DeliveryConcludeCommit,
        Self::SweepDelete,
        Self::SweepCommit,
        Self::KeyRevoke,
        Self::KeyRevokeCommit,
        Self::DepositInsert,
        Self::CreditCommit,
        Self::SessionInsert,
        Self::TallyPut,
        Self::SessionApply,
        Self::TransactionInsert,
        Self::TransactionEnd,
        Self::PreviewInsert,
        Self::PreviewUse,
        Self::CustomerInsert,
        Self::CustomerPut,
        Self::SignedQuoteInsert,
        Self::SignedQuoteConsume,
        Self::RailInsert,
        Self::RailAsk,
        Self::RailApply,
        Self::BrandingPut,
        Self::AnswerPut,
        Self::SessionCommit,
        Self::ActCommit,
        Self::ExpiryCommit,
        Self::BrandingCommit,
        Self::TestEventCommit,
        Self::ReplayCommit,
        Self::PreviewCommit,
        Self::CustomerCommit,
        Self::SignedQuoteCommit,
        Self::RedemptionCommit,
        Self::RailClaimCommit,
        Self::RailApplyCommit,
        Self::OtherCommit,
        Self::AnswerWrite,
    ];

    /// The commit step of a transaction, by the transaction's name.
    #[must_use]
    pub fn commit_of(transaction: &str) -> Self {
        match transaction {
            "quote_reject" => Self::RejectCommit,
            "trade_claim" => Self::PollClaimCommit,
            "trade_unclaim" => Self::PollUnclaimCommit,
            "trade_apply" => Self::PollApplyCommit,
            "deliveries_claim" => Self::DeliveryClaimCommit,
            "deliveries_conclude" => Self::DeliveryConcludeCommit,
            "idempotency_sweep" => Self::SweepCommit,
            "key_revoke" => Self::KeyRevokeCommit,
            "credit" => Self::CreditCommit,
            "session_create" => Self::SessionCommit,
            "session_cancel" => Self::ActCommit,
            "session_complete" => Self::ActCommit,
            "session_fail" => Self::ActCommit,
            "session_expire" => Self::ExpiryCommit,
            "sessions_expire" => Self::ExpiryCommit,
            "branding_update" => Self::BrandingCommit,
            "webhook_test" => Self::TestEventCommit,
            "delivery_replay" => Self::ReplayCommit,
            "quote_preview" => Self::PreviewCommit,
            "customer_create" => Self::CustomerCommit,
            "customer_update" => Self::CustomerCommit,
            "customer_delete" => Self::CustomerCommit,
            "signed_quote_lock" => Self::SignedQuoteCommit,
            "rail_create" => Self::RedemptionCommit,
            "rail_claim" => Self::RailClaimCommit,
            "rail_apply" => Self::RailApplyCommit,
            _ => Self::OtherCommit,
        }
    }

    /// The name of one of the step's two points, which a test arms.
    #[must_use]
    pub fn point(self, side: Side) -> String {
        side.of(&format!("{self:?}"))
    }

    /// Whether the step is a commit, so that a fault leaves its outcome unknown.
    #[must_use]
    pub const fn is_commit(self) -> bool {
        matches!(
            self,
            Self::MigrationCommit
                | Self::QuoteCommit
                | Self::RejectCommit
                | Self::TransactCommit
                | Self::PollClaimCommit
                | Self::PollUnclaimCommit
                | Self::PollApplyCommit
                | Self::DeliveryClaimCommit
                | Self::DeliveryConcludeCommit
                | Self::SweepCommit
                | Self::KeyRevokeCommit
                | Self::CreditCommit
                | Self::SessionCommit
                | Self::ActCommit
                | Self::ExpiryCommit
                | Self::BrandingCommit
                | Self::TestEventCommit
                | Self::ReplayCommit
                | Self::PreviewCommit
                | Self::CustomerCommit
                | Self::SignedQuoteCommit
                | Self::RedemptionCommit
                | Self::RailClaimCommit
                | Self::RailApplyCommit
                | Self::OtherCommit
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn point_names_are_unique() {
        let sides = [Side::Before, Side::After];
        let names: BTreeSet<String> = Step::ALL
            .iter()
            .flat_map(|step| sides.map(|side| step.point(side)))
            .collect();
        assert_eq!(names.len(), Step::ALL.len() * 2);
        assert!(names.contains("TradeInsert.before"));
    }
}
