//! Locked previews: one session may use a preview, once, before its expiry and with the same terms.

use std::fmt;

use kernel::rates::Side;
use kernel::{Amount, Asset, Entropy, Timestamp};

use crate::session::{Flow, SessionId, Terms};

/// Identifies a locked preview: 24 hexadecimal characters in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PreviewId([u8; 12]);

impl PreviewId {
    /// A new random id.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; 12];
        entropy.fill(&mut bytes);
        Self(bytes)
    }

    /// Parses an id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let lower = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 24 || !text.bytes().all(lower) {
            return None;
        }
        let mut bytes = [0; 12];
        for (slot, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).ok()?;
            *slot = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for PreviewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

kernel::debug_as_display!(PreviewId);

/// A locked preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    pub id: PreviewId,
    /// The terms that it was created for.
    pub bound: PreviewTerms,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires. It may be used while `now < expires_at`.
    pub expires_at: Timestamp,
    /// The session that used it, and when.
    pub used: Option<(SessionId, Timestamp)>,
}

/// The terms that a session must repeat. The asset is a symbol, so a changed catalogue does not invalidate it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewTerms {
    /// Purchase or sale.
    pub side: Side,
    /// The fiat currency.
    pub currency: Asset,
    /// The symbol of the crypto asset.
    pub asset: String,
    /// The input leg, in units of 10^-8.
    pub units: i64,
}

impl PreviewTerms {
    /// The terms of an order of this side, currency and asset.
    #[must_use]
    pub fn of(side: Side, currency: Asset, asset: Asset, amount: &Amount) -> Self {
        Self {
            side,
            currency,
            asset: asset.code().to_owned(),
            units: amount.units(),
        }
    }

    /// Whether a session has the preview's amount (as a number), currency, asset and side.
    fn agrees(&self, terms: &Terms) -> bool {
        u64::try_from(self.units) == Ok(terms.amount.units())
            && terms.currency == self.currency
            && terms.target_token.as_deref() == Some(self.asset.as_str())
            && terms.flow == Some(Flow::from(self.side))
    }
}

/// Why a session may not use a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PreviewRefusal {
    /// The partner has no such preview.
    #[error("`quote_preview_id`: no such locked preview")]
    Missing,
    /// The preview has expired.
    #[error("`quote_preview_id`: the preview has expired")]
    Expired,
    /// Another session used the preview.
    #[error("`quote_preview_id`: another session has used the preview")]
    Used,
    /// The terms of the session differ.
    #[error(
        "`quote_preview_id`: expected `amount`, `currency`, `target_token` and `flow` to be those of the preview"
    )]
    Mismatch,
}

impl Preview {
    /// Checks that a session with these terms may use the preview. `now` must be read after the preview's lock was
    /// taken.
    ///
    /// # Errors
    /// [`PreviewRefusal`], checked in the order expired, used, mismatch.
    pub fn must_fit(&self, terms: &Terms, now: Timestamp) -> Result<(), PreviewRefusal> {
        if now >= self.expires_at {
            return Err(PreviewRefusal::Expired);
        }
        if self.used.is_some() {
            return Err(PreviewRefusal::Used);
        }
        let agrees = self.bound.agrees(terms);
        agrees.then_some(()).ok_or(PreviewRefusal::Mismatch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::SessionAmount;
    use crate::object::JsonObject;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_779_710_400_000 + millis).unwrap()
    }

    fn session() -> SessionId {
        SessionId::parse("gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK").unwrap()
    }

    fn preview(used: Option<(SessionId, Timestamp)>) -> Preview {
        let (eur, usdt) = (Asset::fiat("EUR").unwrap(), Asset::crypto("USDT").unwrap());
        let amount = Amount::parse("100.50", eur).unwrap();
        Preview {
            id: PreviewId::parse("0123456789abcdef01234567").unwrap(),
            bound: PreviewTerms::of(Side::OnRamp, eur, usdt, &amount),
            created_at: at(0),
            expires_at: at(300_000),
            used,
        }
    }

    fn terms() -> Terms {
        Terms {
            amount: SessionAmount::parse("0100.50000000").unwrap(),
            currency: Asset::fiat("EUR").unwrap(),
            return_url: "https://shop.example/done".to_owned(),
            cancel_url: None,
            target_token: Some("USDT".to_owned()),
            target_network: Some("WHATEVER".to_owned()),
            flow: Some(Flow::OnRamp),
            wallet_address: None,
            user_reference: None,
            metadata: JsonObject::empty(),
        }
    }

    // rule: gate.preview.id
    #[test]
    fn id_has_24_hexadecimal_characters() {
        let text = "0123456789abcdef01234567";
        assert_eq!(PreviewId::parse(text).unwrap().to_string(), text);
        for bad in [
            "",
            "0123456789abcdef0123456",
            "0123456789ABCDEF01234567",
            "+123456789abcdef01234567",
            "0123456789abcdef012345678",
        ] {
            assert!(PreviewId::parse(bad).is_none(), "{bad}");
        }
    }

    // rule: gate.preview.match
    #[test]
    fn session_must_match_amount_currency_asset_and_side() {
        assert_eq!(preview(None).must_fit(&terms(), at(0)), Ok(()));
        let spoiled: [fn(&mut Terms); 7] = [
            |it| it.amount = SessionAmount::parse("100.51").unwrap(),
            |it| it.amount = SessionAmount::parse("100.50000001").unwrap(),
            |it| it.currency = Asset::fiat("USD").unwrap(),
            |it| it.target_token = Some("USDC".to_owned()),
            |it| it.target_token = None,
            |it| it.flow = Some(Flow::OffRamp),
            |it| it.flow = None,
        ];
        for spoil in spoiled {
            let mut terms = terms();
            spoil(&mut terms);
            let checked = preview(None).must_fit(&terms, at(0));
            assert_eq!(checked, Err(PreviewRefusal::Mismatch));
        }
    }

    // rule: gate.preview.once, gate.preview.expiry
    #[test]
    fn preview_is_used_once_before_expiry() {
        let other = Terms {
            flow: None,
            ..terms()
        };
        let fresh = preview(None);
        let used = preview(Some((session(), at(5))));
        assert_eq!(fresh.must_fit(&terms(), at(299_999)), Ok(()));
        assert_eq!(
            fresh.must_fit(&other, at(300_000)),
            Err(PreviewRefusal::Expired)
        );
        assert_eq!(used.must_fit(&other, at(6)), Err(PreviewRefusal::Used));
        assert_eq!(
            used.must_fit(&terms(), at(300_000)),
            Err(PreviewRefusal::Expired)
        );
    }
}
