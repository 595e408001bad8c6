//! State that all handlers of the pools API share.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use http_kit::{ApiError, Class, PathId};
use kernel::Mode;
use parking_lot::RwLock;
use partner_core::ports::Directory;
use partner_core::{Access, PartnerId};
use pools_core::profile::{Pool, PoolId, PoolsProfile};
use pools_core::usecases::create_quote::CreateQuote;
use pools_core::usecases::poll_trade::PollTrade;
use pools_core::usecases::queries::PoolsQueries;
use pools_core::usecases::reject_quote::RejectQuote;
use pools_core::usecases::transact_quote::TransactQuote;

use crate::errors;

/// The use cases behind the routes.
#[derive(Clone)]
pub struct Parts {
    pub mode: Mode,
    /// Who may do what, and which pools there are.
    pub directory: Arc<dyn Directory<PoolsProfile>>,
    pub quoting: CreateQuote,
    pub transacting: TransactQuote,
    pub polling: PollTrade,
    pub rejecting: RejectQuote,
    pub reading: PoolsQueries,
}

/// The state of the router. It is cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

struct Inner {
    parts: Parts,
    discovery: RwLock<HashMap<PartnerId, Discovery>>,
}

/// A partner's discovery response as bytes, valid while both of its sources are unchanged.
struct Discovery {
    access: Arc<Access<PoolsProfile>>,
    pools: Arc<[Pool]>,
    body: Bytes,
}

/// The largest number of cached discovery responses. A full cache is emptied.
const DISCOVERY_LIMIT: usize = 10_000;

impl App {
    #[must_use]
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner {
            parts,
            discovery: RwLock::default(),
        }))
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0.parts
    }

    /// Finds a pool by its id; 404 if it does not exist.
    pub(crate) async fn pool(&self, id: &PathId) -> Result<Pool, ApiError> {
        let id = id.parse("pool", PoolId::parse)?;
        let pools = self.pools().await?;
        let found = pools.iter().find(|pool| pool.id == id).cloned();
        found.ok_or_else(|| ApiError::not_found("pool"))
    }

    /// Finds a pool that the partner may use: 404 if it does not exist, 403 if the partner may not
    /// use it.
    pub(crate) async fn allowed_pool(
        &self,
        access: &Access<PoolsProfile>,
        id: &PathId,
    ) -> Result<Pool, ApiError> {
        let pool = self.pool(id).await?;
        let allowed = access.profile.pool_allowed(&pool.id);
        allowed.map_err(errors::denied)?;
        Ok(pool)
    }

    pub(crate) async fn pools(&self) -> Result<Arc<[Pool]>, ApiError> {
        Ok(self.0.parts.directory.listing(self.0.parts.mode).await?)
    }

    /// The partner's discovery response, serialized once for each version of its sources.
    pub(crate) async fn discovery(
        &self,
        access: &Arc<Access<PoolsProfile>>,
        render: fn(&Access<PoolsProfile>, &[Pool]) -> Result<Bytes, ApiError>,
    ) -> Result<Bytes, ApiError> {
        let pools = self.pools().await?;
        let partner = &access.partner.id;
        if let Some(known) = self.0.discovery.read().get(partner)
            && Arc::ptr_eq(&known.access, access)
            && Arc::ptr_eq(&known.pools, &pools)
        {
            return Ok(known.body.clone());
        }
        let body = render(access, &pools)?;
        let mut table = self.0.discovery.write();
        if table.len() >= DISCOVERY_LIMIT {
            table.clear();
        }
        table.insert(
            partner.clone(),
            Discovery {
                access: Arc::clone(access),
                pools,
                body: body.clone(),
            },
        );
        Ok(body)
    }
}

/// Proof of a good key of either kind.
pub(crate) type AnyKey = http_kit::AnyKey<PoolsProfile>;
/// Proof of a good secret key.
pub(crate) type Secret = http_kit::Secret<PoolsProfile>;
/// Proof of a good secret key whose partner is entitled to pools.
pub(crate) type Entitled = http_kit::Entitled<PoolsProfile>;

/// An operation with the class that states who may call it. All operations share one limit.
pub(crate) type Operation = http_kit::Operation<App, Class>;
