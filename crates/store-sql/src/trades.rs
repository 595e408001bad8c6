//! Trades: what their rows say, and the columns that a state stands in.

use kernel::{Mid, Mode, StoreError, Timestamp};
use pools_core::engine::EngineName;
use pools_core::quote::Side;
use pools_core::trade::{Lease, Settlement, Trade, TradeState, TradeStatus};

use crate::{Row, quotes};

pub fn trade(row: &dyn Row, mode: Mode) -> Result<Trade, StoreError> {
    let terms = quotes::terms(row)?;
    let reserved = match terms.side {
        Side::OnRamp => row.opt_amount("reserved", terms.pool.fiat())?,
        Side::OffRamp => row.opt_amount("reserved", terms.pool.crypto())?,
    };
    if reserved.is_some_and(|reserved| reserved != terms.input())
        || (terms.side == Side::OffRamp && reserved.is_none())
    {
        return Err(row.bad("reserved"));
    }
    Ok(Trade {
        id: row.id("id", mode)?,
        quote: row.id("quote_id", mode)?,
        terms,
        engine: row.opt_parsed("engine", EngineName::parse)?,
        reserved,
        created_at: row.instant("created_at")?,
        state: state(row)?,
        attempts: row.count("attempts")?,
        lease: lease(row)?,
    })
}

/// How many trades an engine holds.
pub fn held(row: &dyn Row) -> Result<(EngineName, u64), StoreError> {
    Ok((
        row.parsed("engine", EngineName::parse)?,
        row.count("trades")?,
    ))
}

fn state(row: &dyn Row) -> Result<TradeState, StoreError> {
    let status = row.parsed("status", TradeStatus::parse)?;
    let rate = row.opt_parsed("fill_rate", Mid::parse)?;
    let settlement = match (row.opt_instant("settled_at")?, row.opt_string("fill")?) {
        (None, None) if rate.is_none() => None,
        (None, None) => return Err(row.bad("fill_rate")),
        (Some(at), Some(fill)) => Some(Settlement { at, fill, rate }),
        (Some(_), None) | (None, Some(_)) => return Err(row.bad("fill")),
    };
    let released = row.opt_instant("released_at")?;
    let failed = row.opt_instant("failed_at")?;
    let returned = row.opt_instant("returned_at")?;
    match (status, settlement, released, failed, returned) {
        (TradeStatus::Reserved, None, None, None, None) => Ok(TradeState::Reserved),
        (TradeStatus::Settled, Some(settlement), None, None, None) => {
            Ok(TradeState::Settled(settlement))
        }
        (TradeStatus::Released, None, Some(at), None, None) => Ok(TradeState::Released { at }),
        (TradeStatus::Failed, None, None, Some(at), None) => Ok(TradeState::Failed { at }),
        (TradeStatus::Returned, Some(settlement), None, None, Some(at)) => {
            Ok(TradeState::Returned { settlement, at })
        }
        _ => Err(row.bad("status")),
    }
}

fn lease(row: &dyn Row) -> Result<Option<Lease>, StoreError> {
    match (
        row.opt_integer("lease_token")?,
        row.opt_instant("lease_until")?,
    ) {
        (None, None) => Ok(None),
        (Some(token), Some(until)) => Ok(Some(Lease {
            token: token.cast_unsigned(),
            until,
        })),
        (Some(_), None) | (None, Some(_)) => Err(row.bad("lease_until")),
    }
}

/// The columns of a state.
#[derive(Debug, Default)]
pub struct Facts<'s> {
    pub settled_at: Option<Timestamp>,
    pub fill: Option<&'s str>,
    pub fill_rate: Option<String>,
    pub released_at: Option<Timestamp>,
    pub failed_at: Option<Timestamp>,
    pub returned_at: Option<Timestamp>,
    /// When the state was reached.
    pub reached_at: Option<Timestamp>,
}

impl<'s> Facts<'s> {
    #[must_use]
    pub fn of(state: &'s TradeState) -> Self {
        let settled_at = state.settlement().map(|settlement| settlement.at);
        let fill = state
            .settlement()
            .map(|settlement| settlement.fill.as_str());
        let rate = state.settlement().and_then(|settlement| settlement.rate);
        let facts = Self {
            settled_at,
            fill,
            fill_rate: rate.map(|rate| rate.to_string()),
            ..Self::default()
        };
        match state {
            TradeState::Reserved => facts,
            TradeState::Settled(settlement) => Self {
                reached_at: Some(settlement.at),
                ..facts
            },
            TradeState::Released { at } => Self {
                released_at: Some(*at),
                reached_at: Some(*at),
                ..facts
            },
            TradeState::Failed { at } => Self {
                failed_at: Some(*at),
                reached_at: Some(*at),
                ..facts
            },
            TradeState::Returned { at, .. } => Self {
                returned_at: Some(*at),
                reached_at: Some(*at),
                ..facts
            },
        }
    }
}
