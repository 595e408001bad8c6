//! Signed quotes: a locked rate that one pay-in, pay-out or swap redeems, once and before its expiry.
//!
//! A quote of the hosted flow is bound to its session. A session has at most one such quote that can be redeemed: a new
//! one supersedes it.
//!
//! The operator signs each quote. The signature proves that the stored quote was not changed.

use std::fmt;

use kernel::rates::Side;
use kernel::{Amount, Asset, Id, Timestamp};
use partner_core::Tenant;
use partner_core::sealing::{Sealer, Signature};
use serde_json::json;

use crate::pricing::Priced;
use crate::session::{Flow, SessionId};

kernel::id_kind!(SignedQuoteIdKind, "qt");

/// `qt_<mode>_<ULID>`.
pub type SignedQuoteId = Id<SignedQuoteIdKind>;

/// The terms that a signed quote locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuoteTerms {
    /// What pays for what.
    pub conversion: Conversion,
    /// The chain the asset moves on. In a swap, the asset is the one that the user receives.
    pub network: String,
    /// Both legs, the rate and the fees.
    pub priced: Priced,
}

/// What pays for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conversion {
    /// The user pays fiat for the asset.
    Purchase {
        /// How the fiat is paid.
        payment_method: String,
    },
    /// The user sells the asset for fiat.
    Sale {
        /// How the fiat is paid out.
        payment_method: String,
    },
    /// The user sends another asset for the asset.
    Swap(Source),
}

/// What the user sends in a swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Exactly how much of the asset.
    pub amount: Amount,
    /// The chain it moves on.
    pub network: String,
}

/// What the customer pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paid<'t> {
    pub amount: Amount,
    /// The chain that crypto moves on; `None` for fiat.
    pub network: Option<&'t str>,
}

impl Conversion {
    /// A purchase or a sale by a method.
    #[must_use]
    pub const fn ramp(side: Side, payment_method: String) -> Self {
        match side {
            Side::OnRamp => Self::Purchase { payment_method },
            Side::OffRamp => Self::Sale { payment_method },
        }
    }
}

impl QuoteTerms {
    /// The flow that the quote is for.
    #[must_use]
    pub const fn flow(&self) -> Flow {
        match self.conversion {
            Conversion::Purchase { .. } => Flow::OnRamp,
            Conversion::Sale { .. } => Flow::OffRamp,
            Conversion::Swap(_) => Flow::Swap,
        }
    }

    /// The payment or payout method; `None` for a swap.
    #[must_use]
    pub fn payment_method(&self) -> Option<&str> {
        match &self.conversion {
            Conversion::Purchase { payment_method } | Conversion::Sale { payment_method } => {
                Some(payment_method)
            }
            Conversion::Swap(_) => None,
        }
    }

    /// What the user sends in a swap.
    #[must_use]
    pub const fn source(&self) -> Option<&Source> {
        match &self.conversion {
            Conversion::Purchase { .. } | Conversion::Sale { .. } => None,
            Conversion::Swap(source) => Some(source),
        }
    }

    /// What the customer pays: the fiat of a purchase, the asset of a sale, the source of a swap.
    #[must_use]
    pub fn paid(&self) -> Paid<'_> {
        let (amount, network) = match &self.conversion {
            Conversion::Purchase { .. } => (self.priced.fiat, None),
            Conversion::Sale { .. } => (self.priced.crypto, Some(self.network.as_str())),
            Conversion::Swap(source) => (source.amount, Some(source.network.as_str())),
        };
        Paid { amount, network }
    }

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedQuote {
    pub id: SignedQuoteId,
    /// The locked terms.
    pub terms: QuoteTerms,
    /// The session that alone may redeem it; `None` for a quote that the partner locked for any of its sessions.
    pub session: Option<SessionId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires. It may be redeemed while `now < expires_at`.
    pub expires_at: Timestamp,
    /// When it was redeemed, if it was.
    pub consumed_at: Option<Timestamp>,
    /// When a newer quote of its session superseded it, if one did.
    pub superseded_at: Option<Timestamp>,
    /// The signature over all fields above except `consumed_at` and `superseded_at`, over the partner and over the
    /// installation.
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

/// The time during which a quote may be redeemed.
#[derive(Debug, Clone, Copy)]
pub struct Lifetime {
    /// Its creation.
    pub from: Timestamp,
    /// Its expiry.
    pub until: Timestamp,
}

kernel::closed_list! {
    /// The status of a signed quote, as a partner reads it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SignedQuoteStatus {
        /// The quote can be redeemed.
        Active = "active",
        /// The quote was redeemed.
        Consumed = "consumed",
        /// The quote expired before it was redeemed.
        Expired = "expired",
        /// A newer quote of its session superseded it.
        Superseded = "superseded",
    }
}

/// Why a quote cannot be redeemed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuoteClosed {
    /// It was redeemed before.
    #[error("the quote has been redeemed")]
    Consumed,
    /// A newer quote of its session superseded it.
    #[error("a newer quote of the session has superseded the quote")]
    Superseded,
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
        session: Option<SessionId>,
        lifetime: Lifetime,
        issue: Issue<'_>,
        sealer: &Sealer,
    ) -> Result<Self, Unsigned> {
        let unsigned = Self {
            id,
            terms,
            session,
            created_at: lifetime.from,
            expires_at: lifetime.until,
            consumed_at: None,
            superseded_at: None,
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
    /// key, and no program has made one since version 2. The quotes of sessions are younger.
    #[must_use]
    pub fn is_genuine(&self, issue: Issue<'_>, sealer: &Sealer) -> bool {
        let is_signed = |issue| {
            let canonical = self.canonical(issue);
            canonical.is_ok_and(|canonical| sealer.sign(&canonical) == self.signature)
        };
        is_signed(Some(issue)) || self.session.is_none() && is_signed(None)
    }

    /// The canonical JSON (RFC 8785) that is signed: the fields that a partner reads, except `status`, `consumed_at`
    /// and `signature`.
    ///
    /// Version 2 adds its version, the installation and the partner. Version 3, of the quotes that are bound to a session,
    /// adds the session, and what the user sends in a swap. Version 1 is signed without `issue`.
    fn canonical(&self, issue: Option<Issue<'_>>) -> Result<Vec<u8>, serde_json::Error> {
        let text = |shown: &dyn fmt::Display| shown.to_string();
        let (terms, priced) = (&self.terms, &self.terms.priced);
        let mut signed = json!({
            "object": "signed_quote",
            "id": text(&self.id),
            "side": terms.flow().as_str(),
            "currency": terms.currency().code(),
            "asset": terms.asset().code(),
            "network": terms.network,
            "payment_method": terms.payment_method(),
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
        if let (Some(source), Some(fields)) = (terms.source(), signed.as_object_mut()) {
            let asset = source.amount.asset();
            fields.insert("source_asset".to_owned(), json!(asset.code()));
            fields.insert("source_network".to_owned(), json!(source.network));
            fields.insert("source_amount".to_owned(), json!(text(&source.amount)));
        }
        if let (Some(issue), Some(fields)) = (issue, signed.as_object_mut()) {
            let version = if self.session.is_some() { 3 } else { 2 };
            fields.insert("signature_version".to_owned(), json!(version));
            let installation = json!(issue.installation.0);
            fields.insert("installation".to_owned(), installation);
            fields.insert("mode".to_owned(), json!(issue.tenant.mode.as_str()));
            let partner = json!(issue.tenant.partner.as_str());
            fields.insert("partner_id".to_owned(), partner);
            if let Some(session) = self.session {
                fields.insert("session_id".to_owned(), json!(text(&session)));
            }
        }
        serde_json_canonicalizer::to_vec(&signed)
    }

    /// The status at an instant. Consumed has priority over expired, which starts at `expires_at`.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> SignedQuoteStatus {
        match self.must_be_active(now) {
            Ok(()) => SignedQuoteStatus::Active,
            Err(QuoteClosed::Consumed) => SignedQuoteStatus::Consumed,
            Err(QuoteClosed::Superseded) => SignedQuoteStatus::Superseded,
            Err(QuoteClosed::Expired) => SignedQuoteStatus::Expired,
        }
    }

    /// Checks that the quote can be redeemed. `now` must be read after the quote's lock was taken.
    ///
    /// # Errors
    /// The first [`QuoteClosed`] that applies.
    pub fn must_be_active(&self, now: Timestamp) -> Result<(), QuoteClosed> {
        if self.consumed_at.is_some() {
            Err(QuoteClosed::Consumed)
        } else if self.superseded_at.is_some() {
            Err(QuoteClosed::Superseded)
        } else if now >= self.expires_at {
            Err(QuoteClosed::Expired)
        } else {
            Ok(())
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
    use kernel::{Mode, Rate};
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
        given_to(sealer, None)
    }

    fn given_to(sealer: &Sealer, session: Option<SessionId>) -> SignedQuote {
        let eur = |text| Amount::parse(text, Asset::fiat("EUR").unwrap()).unwrap();
        let priced = Priced {
            rate: Rate::parse("1.0822875").unwrap(),
            fiat: eur("100.00"),
            crypto: Amount::parse("106.605318", Asset::crypto("USDT").unwrap()).unwrap(),
            fees: Fees::of(eur("1.00"), eur("0.50")).unwrap(),
        };
        let terms = QuoteTerms {
            conversion: Conversion::ramp(Side::OnRamp, "sepa".to_owned()),
            network: "tron".to_owned(),
            priced,
        };
        given_terms(sealer, terms, session)
    }

    fn given_terms(sealer: &Sealer, terms: QuoteTerms, session: Option<SessionId>) -> SignedQuote {
        let id = SignedQuoteId::parse("qt_test_01KSFVT4Z2V6B9C1D3F5G7H8JK").unwrap();
        let (installation, tenant) = (&here(), &acme());
        let issue = Issue {
            installation,
            tenant,
        };
        let lifetime = Lifetime {
            from: at(0),
            until: at(60_000),
        };
        SignedQuote::give(id, terms, session, lifetime, issue, sealer).unwrap()
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

    // rule: gate.quote.signature
    #[test]
    fn signature_of_swap_covers_what_the_user_sends() {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let session = SessionId::parse("gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK");
        let amount = |text| Amount::parse(text, Asset::crypto("BTC").unwrap()).unwrap();
        let swap = |text, network: &str| {
            Conversion::Swap(Source {
                amount: amount(text),
                network: network.to_owned(),
            })
        };
        let mut terms = given(&sealer).terms;
        terms.conversion = swap("0.002", "bitcoin");
        let quote = given_terms(&sealer, terms, session);
        assert!(is_genuine(&quote, &sealer));
        let (installation, tenant) = (&here(), &acme());
        let issue = Issue {
            installation,
            tenant,
        };
        let signed = String::from_utf8(quote.canonical(Some(issue)).unwrap()).unwrap();
        assert!(signed.contains(r#""signature_version":3"#), "{signed}");
        for changed in [
            swap("0.00199999", "bitcoin"),
            swap("0.002", "lightning"),
            Conversion::ramp(Side::OnRamp, "sepa".to_owned()),
        ] {
            let mut other = quote.clone();
            other.terms.conversion = changed;
            assert!(!is_genuine(&other, &sealer), "{other:?}");
        }
    }

    // rule: gate.embed-quote.bound
    #[test]
    fn quote_moved_to_another_session_is_not_genuine() {
        let sealer = Sealer::new(&MasterKey::new([1; 32]));
        let session = SessionId::parse("gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK").unwrap();
        let bound = given_to(&sealer, Some(session));
        assert!(is_genuine(&bound, &sealer));
        for session in [None, SessionId::parse("gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JM")] {
            let moved = SignedQuote {
                session,
                ..bound.clone()
            };
            assert!(!is_genuine(&moved, &sealer), "{session:?}");
        }
        let first = SignedQuote {
            signature: sealer.sign(&bound.canonical(None).unwrap()),
            ..bound
        };
        assert!(!is_genuine(&first, &sealer));
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

    // rule: gate.embed-quote.superseded
    #[test]
    fn superseded_quote_reads_as_superseded_unless_consumed() {
        let superseded = SignedQuote {
            superseded_at: Some(at(3)),
            ..given(&Sealer::new(&MasterKey::new([1; 32])))
        };
        assert_eq!(superseded.status(at(4)), SignedQuoteStatus::Superseded);
        for now in [at(4), at(60_000)] {
            let closed = superseded.must_be_active(now);
            assert_eq!(closed, Err(QuoteClosed::Superseded));
        }
        let consumed = superseded.consumed(at(2));
        assert_eq!(consumed.must_be_active(at(4)), Err(QuoteClosed::Consumed));
    }
}
