//! Signed quotes: a locked rate that one pay-in or pay-out redeems, once and in time.
//!
//! The signature is the operator's: it shows that what is stored is what was given.

use std::fmt;

use kernel::{Asset, Id, IdKind, Timestamp};
use partner_core::rates::Side;
use partner_core::sealing::{Sealer, Signature};
use serde_json::json;

use crate::pricing::Priced;

/// Names a signed quote.
#[derive(Debug)]
pub enum SignedQuoteNoun {}

impl IdKind for SignedQuoteNoun {
    const PREFIX: &'static str = "qt";
}

/// `qt_<mode>_<ULID>`.
pub type SignedQuoteId = Id<SignedQuoteNoun>;

/// What a signed quote locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuoteTerms {
    /// Which way it goes.
    pub side: Side,
    /// The chain the asset moves on.
    pub network: String,
    /// How the user pays, or is paid.
    pub payment_method: String,
    /// Both legs, the rate and the fees.
    pub priced: Priced,
}

impl QuoteTerms {
    /// What the user pays, or is paid, in.
    #[must_use]
    pub const fn currency(&self) -> Asset {
        self.priced.fiat.asset()
    }

    /// What the user buys or sells.
    #[must_use]
    pub const fn asset(&self) -> Asset {
        self.priced.crypto.asset()
    }
}

/// A signed quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedQuote {
    /// Its id.
    pub id: SignedQuoteId,
    /// What it locks.
    pub terms: QuoteTerms,
    /// When it was given.
    pub created_at: Timestamp,
    /// From this instant on it is expired.
    pub expires_at: Timestamp,
    /// When it was redeemed, if it was.
    pub consumed_at: Option<Timestamp>,
    /// Over everything above but when it was redeemed.
    pub signature: Signature,
}

/// A signed quote's status as a partner reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedQuoteStatus {
    /// It can be redeemed.
    Active,
    /// It has been.
    Consumed,
    /// It was not, and it is too late.
    Expired,
}

impl SignedQuoteStatus {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Consumed => "consumed",
            Self::Expired => "expired",
        }
    }
}

/// Why a quote cannot be redeemed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuoteClosed {
    /// It has been.
    #[error("the quote has been redeemed")]
    Consumed,
    /// Its time is over.
    #[error("the quote has expired")]
    Expired,
}

/// A quote whose canonical form could not be written out.
#[derive(Debug, thiserror::Error)]
#[error("a quote could not be written out to be signed")]
pub struct Unsigned(#[from] serde_json::Error);

impl SignedQuote {
    /// Gives a quote, signed.
    ///
    /// # Errors
    /// [`Unsigned`]: none in practice.
    pub fn give(
        id: SignedQuoteId,
        terms: QuoteTerms,
        created_at: Timestamp,
        expires_at: Timestamp,
        sealer: &Sealer,
    ) -> Result<Self, Unsigned> {
        let canonical = canonical(id, &terms, created_at, expires_at)?;
        Ok(Self {
            id,
            terms,
            created_at,
            expires_at,
            consumed_at: None,
            signature: sealer.sign(&canonical),
        })
    }

    /// Is it what was signed?
    #[must_use]
    pub fn is_genuine(&self, sealer: &Sealer) -> bool {
        let canonical = canonical(self.id, &self.terms, self.created_at, self.expires_at);
        canonical.is_ok_and(|canonical| sealer.sign(&canonical) == self.signature)
    }

    /// The status at an instant: consumed wins over expired, which holds from `expires_at` on.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> SignedQuoteStatus {
        match self.consumed_at {
            Some(_) => SignedQuoteStatus::Consumed,
            None if now >= self.expires_at => SignedQuoteStatus::Expired,
            None => SignedQuoteStatus::Active,
        }
    }

    /// Can it be redeemed at an instant read after its lock was taken?
    ///
    /// # Errors
    /// [`QuoteClosed`].
    pub fn must_be_active(&self, now: Timestamp) -> Result<(), QuoteClosed> {
        match self.status(now) {
            SignedQuoteStatus::Active => Ok(()),
            SignedQuoteStatus::Consumed => Err(QuoteClosed::Consumed),
            SignedQuoteStatus::Expired => Err(QuoteClosed::Expired),
        }
    }

    /// The quote after it was redeemed.
    #[must_use]
    pub fn consumed(self, at: Timestamp) -> Self {
        Self {
            consumed_at: Some(at),
            ..self
        }
    }
}

/// The canonical JSON (RFC 8785) of what is signed: every field that a partner reads but `status`,
/// `consumed_at` and `signature`.
fn canonical(
    id: SignedQuoteId,
    terms: &QuoteTerms,
    created_at: Timestamp,
    expires_at: Timestamp,
) -> Result<Vec<u8>, serde_json::Error> {
    let text = |shown: &dyn fmt::Display| shown.to_string();
    let priced = &terms.priced;
    serde_json_canonicalizer::to_vec(&json!({
        "object": "signed_quote",
        "id": text(&id),
        "side": terms.side.as_str(),
        "currency": terms.currency().code(),
        "asset": terms.asset().code(),
        "network": terms.network,
        "payment_method": terms.payment_method,
        "fiat_amount": text(&priced.fiat),
        "crypto_amount": text(&priced.crypto),
        "exchange_rate": text(&priced.rate),
        "fees": {
            "total": text(&priced.fees.total),
            "service": text(&priced.fees.service),
            "network": text(&priced.fees.network),
            "currency": terms.currency().code(),
        },
        "created_at": text(&created_at),
        "expires_at": text(&expires_at),
    }))
}

#[cfg(test)]
mod tests {
    use kernel::{Amount, Rate};
    use partner_core::sealing::MasterKey;

    use super::*;
    use crate::pricing::Fees;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_779_710_400_000 + millis).unwrap()
    }

    fn quote(sealer: &Sealer) -> SignedQuote {
        let eur = |text| Amount::parse(text, Asset::fiat("EUR").unwrap()).unwrap();
        let priced = Priced {
            rate: Rate::parse("1.0822875").unwrap(),
            fiat: eur("100.00"),
            crypto: Amount::parse("106.605318", Asset::crypto("USDT").unwrap()).unwrap(),
            fees: Fees::of(eur("1.00"), eur("0.50")).unwrap(),
        };
        let terms = QuoteTerms {
            side: Side::OnRamp,
            network: "tron".to_owned(),
            payment_method: "sepa".to_owned(),
            priced,
        };
        let id = SignedQuoteId::parse("qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK").unwrap();
        SignedQuote::give(id, terms, at(0), at(60_000), sealer).unwrap()
    }

    // rule: gate.quote.signature
    #[test]
    fn what_is_signed_is_the_canonical_form_of_what_is_read() {
        let quote = quote(&Sealer::new(&MasterKey::new([1; 32])));
        let canonical = canonical(quote.id, &quote.terms, quote.created_at, quote.expires_at);
        let expected = concat!(
            r#"{"asset":"USDT","created_at":"2026-05-25T12:00:00.000Z","crypto_amount":"106.605318","#,
            r#""currency":"EUR","exchange_rate":"1.0822875","expires_at":"2026-05-25T12:01:00.000Z","#,
            r#""fees":{"currency":"EUR","network":"0.50","service":"1.00","total":"1.50"},"#,
            r#""fiat_amount":"100.00","id":"qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK","network":"tron","#,
            r#""object":"signed_quote","payment_method":"sepa","side":"on_ramp"}"#,
        );
        assert_eq!(String::from_utf8(canonical.unwrap()).unwrap(), expected);
    }

    // rule: gate.quote.signature
    #[test]
    fn whoever_changes_a_quote_breaks_its_signature() {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let given = quote(&sealer);
        assert!(given.is_genuine(&sealer));
        assert!(given.clone().consumed(at(5)).is_genuine(&sealer));
        assert!(!given.is_genuine(&Sealer::new(&MasterKey::new([2; 32]))));
        let mut late = given.clone();
        late.expires_at = at(60_001);
        assert!(!late.is_genuine(&sealer));
        let mut dear = given;
        dear.terms.priced.rate = Rate::parse("1.0822876").unwrap();
        assert!(!dear.is_genuine(&sealer));
    }

    // rule: gate.quote.status
    #[test]
    fn a_quote_is_active_until_its_instant_and_consumed_for_good() {
        let given = quote(&Sealer::new(&MasterKey::new([1; 32])));
        assert_eq!(given.status(at(59_999)), SignedQuoteStatus::Active);
        assert_eq!(given.must_be_active(at(60_000)), Err(QuoteClosed::Expired));
        let consumed = given.consumed(at(5));
        assert_eq!(consumed.status(at(60_000)), SignedQuoteStatus::Consumed);
        assert_eq!(consumed.must_be_active(at(6)), Err(QuoteClosed::Consumed));
    }
}
