//! Whether a quote or an order fits a session.

use kernel::{Asset, Mode};

use super::RailKind;
use crate::session::{Flow, Session};
use crate::signed_quote::{Conversion, QuoteTerms};

/// The session and the quote do not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the quote is not one of the session's {0}")]
pub struct Mismatch(pub &'static str);

/// Whether the session's user is approved. In test mode every user is. In live mode a trusted partner must have
/// verified the user.
#[must_use]
pub const fn user_is_approved(session: &Session, mode: Mode) -> bool {
    match mode {
        Mode::Test => true,
        Mode::Live => session.kyc_pre_verified,
    }
}

/// Checks that a record of this kind may redeem a quote of these terms for the session.
///
/// A field that the session leaves open matches every quote. A session's amount does not name a leg: on a purchase it
/// or swap it is the fiat leg, on a sale it is either leg.
///
/// # Errors
/// [`Mismatch`] names the field that differs.
pub fn fits(kind: RailKind, session: &Session, quote: &QuoteTerms) -> Result<(), Mismatch> {
    let terms = &session.terms;
    let priced = &quote.priced;
    let bound = i64::try_from(terms.amount.units()).ok();
    let amount_fits = match quote.conversion {
        Conversion::Purchase { .. } | Conversion::Swap(_) => bound == Some(priced.fiat.units()),
        Conversion::Sale { .. } => [priced.crypto.units(), priced.fiat.units()]
            .map(Some)
            .contains(&bound),
    };
    let [flow, token, network] = targets(session, quote.flow(), quote.asset(), &quote.network);
    first_mismatch([
        (kind == RailKind::of(quote.flow()), "kind of rail"),
        flow,
        (terms.currency == quote.currency(), "currency"),
        (amount_fits, "amount"),
        token,
        network,
    ])
}

/// Checks an order of the widget against the session: the flow it is locked to, its asset and its network.
///
/// # Errors
/// [`Mismatch`] names the field that differs.
pub fn is_for(session: &Session, flow: Flow, asset: Asset, network: &str) -> Result<(), Mismatch> {
    first_mismatch(targets(session, flow, asset, network))
}

/// Whether the flow, the asset and the network fit the session, with their names. What the session leaves open fits.
fn targets(
    session: &Session,
    flow: Flow,
    asset: Asset,
    network: &str,
) -> [(bool, &'static str); 3] {
    let terms = &session.terms;
    let same = |set: &Option<String>, of: &str| {
        let set = set.as_deref();
        set.is_none_or(|set| set.eq_ignore_ascii_case(of))
    };
    let flow_fits = terms.flow.is_none_or(|own| own == flow);
    [
        (flow_fits, "flow"),
        (same(&terms.target_token, asset.code()), "token"),
        (same(&terms.target_network, network), "network"),
    ]
}

fn first_mismatch<const N: usize>(checked: [(bool, &'static str); N]) -> Result<(), Mismatch> {
    match checked.into_iter().find(|(fits, _)| !fits) {
        Some((_, what)) => Err(Mismatch(what)),
        None => Ok(()),
    }
}
