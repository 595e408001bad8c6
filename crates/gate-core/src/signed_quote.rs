//! Signed quotes: a locked rate that one pay-in or pay-out redeems, once and before its expiry.
//!
//! The operator signs each quote. The signature proves that the stored quote was not changed.

use std::fmt;

use kernel::rates::Side;
use kernel::{Asset, Id, IdKind, Timestamp};
use partner_core::Tenant;
use partner_core::sealing::{Sealer, Signature};
use serde_json::json;

use crate::pricing::Priced;

/// The id kind of signed quotes.
#[derive(Debug)]
pub enum SignedQuoteIdKind {}

impl IdKind for SignedQuoteIdKind {
    const PREFIX: &'static str = "qt";
}

/// `qt_<mode>_<ULID>`.
pub type SignedQuoteId = Id<SignedQuoteIdKind>;

/// The terms that a signed quote locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuoteTerms {
    /// Purchase or sale.
    pub side: Side,
    /// The chain the asset moves on.
    pub network: String,
    /// The payment or payout method.
    pub payment_method: String,
    /// Both legs, the rate and the fees.
    pub priced: Priced,
}

impl QuoteTerms {
    /// The fiat currency.
    #[must_use]
    pub const fn currency(&self) -> Asset {
        self.priced.fiat.asset()
    }

    /// The crypto asset.
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
    /// The locked terms.
    pub terms: QuoteTerms,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires. It may be redeemed while `now < expires_at`.
    pub expires_at: Timestamp,
    /// When it was redeemed, if it was.
    pub consumed_at: Option<Timestamp>,
    /// The signature over all fields above except `consumed_at`, over the partner and over the installation.
    pub signature: Signature,
}

/// The name of an installation, stored in its database for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation(pub String);

/// The issuer and the partner of a quote. The signature covers both, so a quote is valid only there.
#[derive(Debug, Clone, Copy)]
pub struct Issue<'i> {
    /// The installation that signs.
    pub installation: &'i Installation,
    /// The partner of the quote.
    pub tenant: &'i Tenant,
}

/// The status of a signed quote, as a partner reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedQuoteStatus {
    /// The quote can be redeemed.
    Active,
    /// The quote was redeemed.
    Consumed,
    /// The quote expired before it was redeemed.
    Expired,
}

impl SignedQuoteStatus {
    /// The text on the wire.
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
    /// It was redeemed before.
    #[error("the quote has been redeemed")]
    Consumed,
    /// It has expired.
    #[error("the quote has expired")]
    Expired,
}

/// The canonical form of a quote or a token could not be serialized.
#[derive(Debug, thiserror::Error)]
#[error("a quote could not be written out to be signed")]
pub struct Unsigned(#[from] serde_json::Error);

impl SignedQuote {
    /// Creates and signs a quote.
    ///
    /// # Errors
    /// [`Unsigned`] if the quote cannot be serialized.
    pub fn give(
        id: SignedQuoteId,
        terms: QuoteTerms,
        created_at: Timestamp,
        expires_at: Timestamp,
        issue: Issue<'_>,
        sealer: &Sealer,
    ) -> Result<Self, Unsigned> {
        let unsigned = Self {
            id,
            terms,
            created_at,
            expires_at,
            consumed_at: None,
            signature: Signature([0; 32]),
        };
        let signature = sealer.sign(&unsigned.canonical(Some(issue))?);
        Ok(Self {
            signature,
            ..unsigned
        })
    }

    /// Whether this installation signed the quote for this partner.
    ///
    /// A signature of version 1 covers neither the installation nor the partner. It stays valid: it needs the master
    /// key, and no program has made one since version 2.
    #[must_use]
    pub fn is_genuine(&self, issue: Issue<'_>, sealer: &Sealer) -> bool {
        [Some(issue), None].into_iter().any(|issue| {
            let canonical = self.canonical(issue);
            canonical.is_ok_and(|canonical| sealer.sign(&canonical) == self.signature)
        })
    }

    /// The canonical JSON (RFC 8785) that is signed: the fields that a partner reads, except `status`, `consumed_at`
    /// and `signature`.
    ///
    /// Version 2 adds its version, the installation and the partner. Version 1 is signed without `issue`.
    fn canonical(&self, issue: Option<Issue<'_>>) -> Result<Vec<u8>, serde_json::Error> {
        let text = |shown: &dyn fmt::Display| shown.to_string();
        let (terms, priced) = (&self.terms, &self.terms.priced);
        let mut signed = json!({
            "object": "signed_quote",
            "id": text(&self.id),
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
            "created_at": text(&self.created_at),
            "expires_at": text(&self.expires_at),
        });
        if let (Some(issue), Some(fields)) = (issue, signed.as_object_mut()) {
            fields.insert("signature_version".to_owned(), json!(2));
            let installation = json!(issue.installation.0);
            fields.insert("installation".to_owned(), installation);
            fields.insert("mode".to_owned(), json!(issue.tenant.mode.as_str()));
            let partner = json!(issue.tenant.partner.as_str());
            fields.insert("partner_id".to_owned(), partner);
        }
        serde_json_canonicalizer::to_vec(&signed)
    }

    /// The status at an instant. Consumed has priority over expired, which starts at `expires_at`.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> SignedQuoteStatus {
        match self.consumed_at {
            Some(_) => SignedQuoteStatus::Consumed,
            None if now >= self.expires_at => SignedQuoteStatus::Expired,
            None => SignedQuoteStatus::Active,
        }
    }

    /// Checks that the quote can be redeemed. `now` must be read after the quote's lock was taken.
    ///
    /// # Errors
    /// [`QuoteClosed`] if the quote was redeemed or has expired.
    pub fn must_be_active(&self, now: Timestamp) -> Result<(), QuoteClosed> {
        match self.status(now) {
            SignedQuoteStatus::Active => Ok(()),
            SignedQuoteStatus::Consumed => Err(QuoteClosed::Consumed),
            SignedQuoteStatus::Expired => Err(QuoteClosed::Expired),
        }
    }

    /// The quote after its redemption.
    #[must_use]
    pub fn consumed(self, at: Timestamp) -> Self {
        Self {
            consumed_at: Some(at),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Amount, Mode, Rate};
    use partner_core::PartnerId;
    use partner_core::sealing::MasterKey;

    use super::*;
    use crate::pricing::Fees;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_779_710_400_000 + millis).unwrap()
    }

    fn here() -> Installation {
        Installation("6f0c1b2a".repeat(4))
    }

    fn acme() -> Tenant {
        Tenant {
            mode: Mode::Test,
            partner: PartnerId::parse("acme").unwrap(),
        }
    }

    fn given(sealer: &Sealer) -> SignedQuote {
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
        let (installation, tenant) = (&here(), &acme());
        let issue = Issue {
            installation,
            tenant,
        };
        SignedQuote::give(id, terms, at(0), at(60_000), issue, sealer).unwrap()
    }

    fn is_genuine(quote: &SignedQuote, sealer: &Sealer) -> bool {
        let (installation, tenant) = (&here(), &acme());
        let issue = Issue {
            installation,
            tenant,
        };
        quote.is_genuine(issue, sealer)
    }

    // rule: gate.quote.signature
    #[test]
    fn signature_covers_canonical_form_with_partner_and_installation() {
        let quote = given(&Sealer::new(&MasterKey::new([1; 32])));
        let first = concat!(
            r#"{"asset":"USDT","created_at":"2026-05-25T12:00:00.000Z","crypto_amount":"106.605318","#,
            r#""currency":"EUR","exchange_rate":"1.0822875","expires_at":"2026-05-25T12:01:00.000Z","#,
            r#""fees":{"currency":"EUR","network":"0.50","service":"1.00","total":"1.50"},"#,
            r#""fiat_amount":"100.00","id":"qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK","network":"tron","#,
            r#""object":"signed_quote","payment_method":"sepa","side":"on_ramp"}"#,
        );
        let text = |issue| String::from_utf8(quote.canonical(issue).unwrap()).unwrap();
        assert_eq!(text(None), first);
        let (installation, tenant) = (&here(), &acme());
        let issue = Issue {
            installation,
            tenant,
        };
        let second = first
            .replace(
                r#","network":"tron","#,
                r#","installation":"6f0c1b2a6f0c1b2a6f0c1b2a6f0c1b2a","mode":"test","network":"tron","#,
            )
            .replace(
                r#""payment_method""#,
                r#""partner_id":"acme","payment_method""#,
            )
            .replace(r#""on_ramp"}"#, r#""on_ramp","signature_version":2}"#);
        assert_eq!(text(Some(issue)), second);
    }

    // rule: gate.quote.signature
    #[test]
    fn changed_quote_is_not_genuine() {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let quote = given(&sealer);
        assert!(is_genuine(&quote, &sealer));
        assert!(is_genuine(&quote.clone().consumed(at(5)), &sealer));
        assert!(!is_genuine(&quote, &Sealer::new(&MasterKey::new([2; 32]))));
        let mut late = quote.clone();
        late.expires_at = at(60_001);
        assert!(!is_genuine(&late, &sealer));
        let mut dear = quote;
        dear.terms.priced.rate = Rate::parse("1.0822876").unwrap();
        assert!(!is_genuine(&dear, &sealer));
    }

    // rule: gate.quote.signature-place
    #[test]
    fn moved_quote_is_not_genuine() {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let quote = given(&sealer);
        let (here, acme) = (here(), acme());
        let (elsewhere, mut rival) = (Installation("0".repeat(32)), acme.clone());
        rival.partner = PartnerId::parse("rival").unwrap();
        for (installation, tenant) in [(&here, &rival), (&elsewhere, &acme)] {
            let issue = Issue {
                installation,
                tenant,
            };
            assert!(!quote.is_genuine(issue, &sealer), "{issue:?}");
        }
    }

    // rule: gate.quote.signature-place
    #[test]
    fn quote_signed_in_first_version_stays_genuine_and_tamper_evident() {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let mut quote = given(&sealer);
        quote.signature = sealer.sign(&quote.canonical(None).unwrap());
        assert!(is_genuine(&quote, &sealer));
        quote.expires_at = at(60_001);
        assert!(!is_genuine(&quote, &sealer));
    }

    // rule: gate.quote.status
    #[test]
    fn quote_is_active_until_expiry_and_stays_consumed() {
        let given = given(&Sealer::new(&MasterKey::new([1; 32])));
        assert_eq!(given.status(at(59_999)), SignedQuoteStatus::Active);
        assert_eq!(given.must_be_active(at(60_000)), Err(QuoteClosed::Expired));
        let consumed = given.consumed(at(5));
        assert_eq!(consumed.status(at(60_000)), SignedQuoteStatus::Consumed);
        assert_eq!(consumed.must_be_active(at(6)), Err(QuoteClosed::Consumed));
    }
}
