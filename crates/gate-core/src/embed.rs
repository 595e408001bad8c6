//! Embed tokens: what a browser may do in a widget, for one partner and perhaps one session.

use std::collections::BTreeSet;

use crate::token::{TokenKey, Unsigned};
use kernel::{Mode, Timestamp};
use partner_core::{PartnerId, Tenant};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::session::SessionId;

/// Who issues embed tokens.
const ISSUER: &str = "penstock-gate";

/// One thing a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Reading the session.
    SessionRead,
    /// Paying in it.
    SessionPay,
    /// Handing in a verification.
    KycSubmit,
    /// Reading the branding.
    BrandingRead,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [
        Self::SessionRead,
        Self::SessionPay,
        Self::KycSubmit,
        Self::BrandingRead,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SessionRead => "session:read",
            Self::SessionPay => "session:pay",
            Self::KycSubmit => "kyc:submit",
            Self::BrandingRead => "branding:read",
        }
    }

    /// Reads the word written by [`Scope::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// What a token allows, all in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes(BTreeSet<Scope>);

/// A scope that is none, by its place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "`requested_scopes[{0}]`: expected one of session:read, session:pay, kyc:submit, branding:read"
)]
pub struct UnknownScope(pub usize);

impl Scopes {
    /// Reads what is asked for: nothing said is everything, an empty list is nothing.
    ///
    /// # Errors
    /// [`UnknownScope`].
    pub fn requested(words: Option<&[String]>) -> Result<Self, UnknownScope> {
        let Some(words) = words else {
            return Ok(Self(Scope::ALL.into()));
        };
        let read = words.iter().enumerate();
        let read = read.map(|(place, word)| Scope::parse(word).ok_or(UnknownScope(place)));
        read.collect::<Result<_, _>>().map(Self)
    }

    /// Is something allowed?
    #[must_use]
    pub fn allow(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    fn words(&self) -> Vec<&'static str> {
        self.0.iter().map(|scope| scope.as_str()).collect()
    }
}

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Whose widget it is.
    pub tenant: Tenant,
    /// The session it is bound to.
    pub session: Option<SessionId>,
    /// What it allows.
    pub scopes: Scopes,
    /// When it was given, in whole seconds.
    pub issued_at: Timestamp,
    /// From this instant on it is worth nothing, in whole seconds.
    pub expires_at: Timestamp,
}

/// A token's claims as they stand in it.
#[derive(Deserialize)]
struct Written {
    iss: String,
    sub: String,
    mode: String,
    sid: Option<String>,
    scopes: Vec<String>,
    iat: i64,
    exp: i64,
}

impl Claims {
    /// Signs them.
    ///
    /// # Errors
    /// [`Unsigned`]: none in practice.
    pub fn sign(&self, key: &TokenKey) -> Result<String, Unsigned> {
        let claims: Map<String, Value> = [
            ("iss", json!(ISSUER)),
            ("sub", json!(self.tenant.partner.as_str())),
            ("mode", json!(self.tenant.mode.as_str())),
            ("sid", json!(self.session.map(|id| id.to_string()))),
            ("scopes", json!(self.scopes.words())),
            ("iat", json!(self.issued_at.seconds())),
            ("exp", json!(self.expires_at.seconds())),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        key.sign(&claims)
    }

    /// The claims of a token that was signed here, for this mode, and is still in time.
    #[must_use]
    pub fn open(token: &str, key: &TokenKey, mode: Mode, now: Timestamp) -> Option<Self> {
        let written: Written = key.open(token)?;
        let session = match &written.sid {
            Some(text) => Some(SessionId::parse(text)?.in_mode(mode)?),
            None => None,
        };
        let claims = Self {
            tenant: Tenant {
                partner: PartnerId::parse(&written.sub)?,
                mode: Mode::parse(&written.mode)?,
            },
            session,
            scopes: Scopes::requested(Some(&written.scopes)).ok()?,
            issued_at: seconds(written.iat)?,
            expires_at: seconds(written.exp)?,
        };
        let good = written.iss == ISSUER && claims.tenant.mode == mode && now < claims.expires_at;
        good.then_some(claims)
    }
}

/// An instant in whole seconds, as tokens have them.
pub(crate) fn seconds(seconds: i64) -> Option<Timestamp> {
    Timestamp::from_millis(seconds.checked_mul(1000)?)
}

#[cfg(test)]
mod tests {
    use partner_core::sealing::{DerivedKeys, MasterKey};

    use super::*;

    fn key() -> TokenKey {
        TokenKey::new(&DerivedKeys::of(&MasterKey::new([1; 32])))
    }

    fn claims() -> Claims {
        Claims {
            tenant: Tenant {
                partner: PartnerId::parse("acme").unwrap(),
                mode: Mode::Test,
            },
            session: SessionId::parse("gs_test_01HF7YAT00408104G208104081"),
            scopes: Scopes::requested(None).unwrap(),
            issued_at: seconds(1_700_000_000).unwrap(),
            expires_at: seconds(1_700_003_600).unwrap(),
        }
    }

    // rule: gate.bootstrap.token-claims
    #[test]
    fn a_token_reads_back_until_it_ends() {
        let token = claims().sign(&key()).unwrap();
        let at = |millis: i64| Timestamp::from_millis(millis).unwrap();
        let open = |at| Claims::open(&token, &key(), Mode::Test, at);
        assert_eq!(open(at(1_700_003_599_999)), Some(claims()));
        assert_eq!(open(at(1_700_003_600_000)), None);
        let live = Claims::open(&token, &key(), Mode::Live, at(1_700_000_000_000));
        assert_eq!(live, None);
        let written: Map<String, Value> = key().open(&token).unwrap();
        let names: Vec<&str> = written.keys().map(String::as_str).collect();
        assert_eq!(names, ["iss", "sub", "mode", "sid", "scopes", "iat", "exp"]);
    }

    // rule: gate.bootstrap.token-claims
    #[test]
    fn claims_of_another_kind_are_none() {
        let good = json!({"iss": ISSUER, "sub": "acme", "mode": "test", "sid": null, "scopes": [], "iat": 0, "exp": 10});
        let open = |value: &Value| {
            let token = key().sign(value.as_object().unwrap()).unwrap();
            Claims::open(&token, &key(), Mode::Test, seconds(1).unwrap())
        };
        assert!(open(&good).is_some());
        for (name, value) in [
            ("iss", json!("other")),
            ("sub", json!("Acme")),
            ("mode", json!("live")),
            ("sid", json!("gs_live_01HF7YAT00408104G208104081")),
            ("sid", json!("pq_test_01HF7YAT00408104G208104081")),
            ("scopes", json!(["session:write"])),
            ("exp", json!(1)),
            ("exp", json!("10")),
            ("exp", json!(i64::MAX)),
        ] {
            let mut bad = good.clone();
            bad[name] = value;
            assert_eq!(open(&bad), None, "{bad}");
        }
    }

    // rule: gate.bootstrap.scopes
    #[test]
    fn scopes_narrow() {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        let all = Scopes::requested(None).unwrap();
        assert!(Scope::ALL.into_iter().all(|scope| all.allow(scope)));
        let none = Scopes::requested(Some(&[])).unwrap();
        assert!(!Scope::ALL.into_iter().any(|scope| none.allow(scope)));
        let some = words(&["kyc:submit", "session:read", "kyc:submit"]);
        let some = Scopes::requested(Some(&some)).unwrap();
        assert_eq!(some.words(), ["session:read", "kyc:submit"]);
        for bad in ["", "session", "Session:read", "session:read "] {
            let asked = words(&["session:read", bad]);
            assert_eq!(
                Scopes::requested(Some(&asked)),
                Err(UnknownScope(1)),
                "{bad}"
            );
        }
    }
}
