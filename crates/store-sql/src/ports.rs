//! The ports beside those of `reads.rs`. A macro implements them for a store, because the ports and the store's type belong to other
//! crates.

/// The items that the implementations name.
#[doc(hidden)]
pub mod names {
    pub use std::sync::Arc;
    pub use std::time::Duration;

    pub use async_trait::async_trait;
    pub use gate_core::ports::{GateExports, GateStore, GateTx, UnusedQuotes};
    pub use gate_core::rail::RailRecord;
    pub use kernel::UpstreamName;
    pub use kernel::{Asset, Cas, Mode, Readable, Seen, StoreResult};
    pub use partner_core::export::{Pages, Window};
    pub use partner_core::idempotency::Scope;
    pub use partner_core::key::{KeyHash, KeyId};
    pub use partner_core::ports::{
        ConfigVersions, Directory, KeysRead, MasterKeyStore, PartnerStore, PartnerTx,
        ResealedValue, SealedRow, SealedValue, StoredMasterKey, UnitOfWork,
    };
    pub use partner_core::sealing::{Fingerprint, Sealed};
    pub use partner_core::{Access, Partner, PartnerId, Tenant};
    pub use pools_core::export::ExportedEntry;
    pub use pools_core::ports::{
        Exports, Forgotten, PoolsStore, PoolsTx, QuoteRetention, StatsReads, TradeStats,
        TransactPreflight, TransactSnapshot,
    };
    pub use pools_core::profile::PoolId;
    pub use pools_core::quote::QuoteId;
    pub use pools_core::trade::Trade;
    pub use provisioning::ports::{ProvisionStore, ProvisionTx};

    pub use crate::access::{self, StoredProfile};
    pub use crate::{
        ReadStore, Reader, config, contingent_credits, exports, keys, master_keys, partners,
        preflight, quote_retention, signed_quotes, stats,
    };
}

/// Implements the ports above for a [`ReadStore`](crate::ReadStore). Its method `begin_tx` begins a [`StoreTx`](crate::StoreTx),
/// `begin_change` begins one that changes the configuration, `standing_trades` counts trades, and `read_access` reads a tenant's key.
#[macro_export]
macro_rules! implement_ports {
    ($store:ty) => {
        const _: () = {
            use $crate::ports::names::*;

            #[async_trait]
            impl ConfigVersions for $store {
                async fn config_version(&self) -> StoreResult<i64> {
                    config::version(self.reserved_reader().await?.connection()).await
                }
            }

            #[async_trait]
            impl<P: StoredProfile> Directory<P> for $store {
                async fn access_find(
                    &self,
                    mode: Mode,
                    hash: &KeyHash,
                ) -> StoreResult<Option<Arc<Access<P>>>> {
                    access::find(self.reader().await?.connection(), mode, hash).await
                }

                async fn access_of(
                    &self,
                    who: &Tenant,
                    id: KeyId,
                ) -> StoreResult<Option<Arc<Access<P>>>> {
                    if id.mode() != who.mode {
                        return Ok(None);
                    }
                    let found: Vec<Arc<Access<P>>> = self.read_access(who, id).await?;
                    let mut found = found.into_iter();
                    Ok(found.find(|access| access.partner.id == who.partner))
                }

                async fn listing(&self, mode: Mode) -> StoreResult<Arc<P::Listing>> {
                    P::listing(self.reader().await?.connection(), mode).await
                }
            }

            #[async_trait]
            impl GateStore for $store {
                async fn gate_begin(&self, name: &'static str) -> StoreResult<Box<dyn GateTx>> {
                    Ok(self.begin_tx(name).await?)
                }
            }

            #[async_trait]
            impl PoolsStore for $store {
                async fn begin(&self, name: &'static str) -> StoreResult<Box<dyn PoolsTx>> {
                    Ok(self.begin_tx(name).await?)
                }

                async fn commitments_above(
                    &self,
                    mode: Mode,
                    total: i64,
                ) -> StoreResult<Readable<(Tenant, Asset)>> {
                    contingent_credits::above(&mut self.reader().await?, mode, total).await
                }
            }

            #[async_trait]
            impl PartnerStore for $store {
                async fn partner_find(&self, who: &Tenant) -> StoreResult<Option<Partner>> {
                    partners::find(self.reader().await?.connection(), who).await
                }

                async fn partner_ids(&self, mode: Mode) -> StoreResult<Vec<PartnerId>> {
                    partners::ids(self.reader().await?.connection(), mode).await
                }

                async fn keys_read(&self, who: &Tenant) -> StoreResult<KeysRead> {
                    keys::read(self.reader().await?.connection(), who).await
                }

                async fn partner_begin(
                    &self,
                    name: &'static str,
                ) -> StoreResult<Box<dyn PartnerTx>> {
                    Ok(self.begin_change(name).await?)
                }

                async fn master_key_fingerprint(&self) -> StoreResult<Option<String>> {
                    let mut reader = self.reserved_reader().await?;
                    config::current_fingerprint(reader.connection()).await
                }

                async fn installation_mode(&self) -> StoreResult<Option<Mode>> {
                    config::mode(self.reader().await?.connection()).await
                }

                async fn installation_begin(
                    &self,
                    mode: Mode,
                    fingerprint: &str,
                ) -> StoreResult<()> {
                    let tx = self.begin_tx("installation_begin").await?;
                    master_keys::begin(tx, mode, fingerprint).await
                }
            }

            #[async_trait]
            impl ProvisionStore for $store {
                async fn provision_begin(
                    &self,
                    name: &'static str,
                ) -> StoreResult<Box<dyn ProvisionTx>> {
                    Ok(self.begin_change(name).await?)
                }
            }

            #[async_trait]
            impl MasterKeyStore for $store {
                async fn master_keys(&self) -> StoreResult<Vec<StoredMasterKey>> {
                    master_keys::all(&mut self.reader().await?).await
                }

                async fn master_key_promote(
                    &self,
                    current: Fingerprint,
                    fingerprint: Fingerprint,
                    derived: &Sealed,
                ) -> StoreResult<Cas> {
                    let mut tx = self.begin_tx("master_key_promote").await?;
                    let outcome = tx.master_key_promote(current, fingerprint, derived).await?;
                    tx.commit().await?;
                    Ok(outcome)
                }

                async fn master_keys_retire(&self, current: Fingerprint) -> StoreResult<Cas> {
                    let mut tx = self.begin_tx("master_keys_retire").await?;
                    let outcome = tx.master_keys_retire(current).await?;
                    tx.commit().await?;
                    Ok(outcome)
                }

                fn sealed_columns(&self) -> Vec<&'static str> {
                    master_keys::sealed_columns()
                }

                async fn sealed_page(
                    &self,
                    column: &str,
                    after: Option<&SealedRow>,
                    limit: u32,
                ) -> StoreResult<Vec<SealedValue>> {
                    master_keys::sealed_page(&mut self.reader().await?, column, after, limit).await
                }

                async fn sealed_replace(
                    &self,
                    column: &str,
                    values: &[ResealedValue],
                ) -> StoreResult<u64> {
                    let mut tx = self.begin_tx("sealed_replace").await?;
                    let replaced = tx.sealed_replace(column, values).await?;
                    tx.commit().await?;
                    Ok(replaced)
                }
            }

            #[async_trait]
            impl QuoteRetention for $store {
                async fn quotes_overdue(
                    &self,
                    mode: Mode,
                    expired_for: Duration,
                    limit: u32,
                ) -> StoreResult<Readable<Tenant>> {
                    let mut reader = self.reader().await?;
                    quote_retention::overdue(&mut reader, mode, expired_for, limit).await
                }

                async fn quotes_forget(
                    &self,
                    who: &Tenant,
                    expired_for: Duration,
                    limit: u32,
                ) -> StoreResult<Forgotten> {
                    let tx = self.begin_tx("quotes_forget").await?;
                    quote_retention::forget(tx, who, expired_for, limit).await
                }
            }

            #[async_trait]
            impl UnusedQuotes for $store {
                async fn unused_quotes_due(
                    &self,
                    mode: Mode,
                    limit: u32,
                ) -> StoreResult<Readable<Tenant>> {
                    signed_quotes::unused_due(&mut self.reader().await?, mode, limit).await
                }

                async fn unused_quotes_delete(&self, who: &Tenant, limit: u32) -> StoreResult<u64> {
                    let tx = self.begin_tx("unused_quotes_delete").await?;
                    signed_quotes::delete_unused(tx, who, limit).await
                }
            }

            #[async_trait]
            impl TransactPreflight for $store {
                async fn transact_snapshot(
                    &self,
                    scope: &Scope,
                    pool: &PoolId,
                    quote: QuoteId,
                ) -> StoreResult<Seen<TransactSnapshot>> {
                    let ttl = self.idempotency_ttl();
                    preflight::read(&mut self.reader().await?, scope, pool, quote, ttl).await
                }
            }

            #[async_trait]
            impl StatsReads for $store {
                async fn trade_stats(&self, mode: Mode) -> StoreResult<TradeStats> {
                    self.standing_trades(mode).await
                }

                async fn trades_held_elsewhere(
                    &self,
                    mode: Mode,
                    engines: &[UpstreamName],
                ) -> StoreResult<Vec<(UpstreamName, u64)>> {
                    stats::held_elsewhere(&mut self.reader().await?, mode, engines).await
                }

                async fn trades_returnable_elsewhere(
                    &self,
                    mode: Mode,
                    engines: &[UpstreamName],
                    slice: u32,
                ) -> StoreResult<Vec<(Option<UpstreamName>, u64)>> {
                    stats::returnable_elsewhere(self, mode, engines, slice).await
                }

                async fn trades_claim(
                    &self,
                    mode: Mode,
                    engine: &UpstreamName,
                ) -> StoreResult<u64> {
                    let tx = self.begin_tx("trades_claim").await?;
                    stats::claim(tx, mode, engine).await
                }
            }

            // Each export reads its own snapshot.
            #[async_trait]
            impl GateExports for $store {
                async fn payments_export(
                    &self,
                    who: &Tenant,
                    window: Window,
                ) -> StoreResult<Box<dyn Pages<RailRecord>>> {
                    Ok(exports::payments(
                        self.export_snapshot().await?,
                        who,
                        window,
                    ))
                }
            }

            #[async_trait]
            impl Exports for $store {
                async fn trades_export(
                    &self,
                    who: &Tenant,
                    window: Window,
                ) -> StoreResult<Box<dyn Pages<Trade>>> {
                    Ok(exports::trades(self.export_snapshot().await?, who, window))
                }

                async fn ledger_export(
                    &self,
                    who: &Tenant,
                    window: Window,
                ) -> StoreResult<Box<dyn Pages<ExportedEntry>>> {
                    exports::ledger(self.export_snapshot().await?, who, window).await
                }
            }
        };
    };
}
