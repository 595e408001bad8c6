//! Embed tokens: what a browser may do in a widget of one partner, optionally for one session.

use std::collections::BTreeSet;

use crate::token::{TokenKey, Unsigned};
use kernel::{Id, IdKind, Mode, Timestamp};
use partner_core::key::KeyId;
use partner_core::{PartnerId, Tenant};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::session::SessionId;

/// The issuer claim of embed tokens.
const ISSUER: &str = "penstock-gate";

/// The audience claim of embed tokens: the calls of the widget.
const AUDIENCE: &str = "penstock-embed";

kernel::closed_list! {
    /// One permission of a token.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Scope {
        SessionRead = "session:read",
        SessionPay = "session:pay",
        /// Submit a verification.
        KycSubmit = "kyc:submit",
        BrandingRead = "branding:read",
    }
}

/// The set of a token's permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes(BTreeSet<Scope>);

/// An unknown scope, with its index in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "`requested_scopes[{0}]`: expected one of session:read, session:pay, kyc:submit, branding:read"
)]
pub struct UnknownScope(pub usize);

impl Scopes {
    /// Parses the requested scopes. `None` requests all scopes, an empty list requests none.
    ///
    /// # Errors
    /// [`UnknownScope`] with the index of the first unknown scope.
    pub fn requested(words: Option<&[String]>) -> Result<Self, UnknownScope> {
        let Some(words) = words else {
            return Ok(Self(Scope::ALL.into()));
        };
        let read = words.iter().enumerate();
        let read = read.map(|(place, word)| Scope::parse(word).ok_or(UnknownScope(place)));
        read.collect::<Result<_, _>>().map(Self)
    }

    /// Whether the set contains a scope.
    #[must_use]
    pub fn allow(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    fn words(&self) -> Vec<&'static str> {
        self.0.iter().map(|scope| scope.as_str()).collect()
    }
}

/// Why a token does not allow a call of the widget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenDenial {
    /// The token lacks the scope of the call.
    #[error("the token lacks the scope {}", .0.as_str())]
    ScopeMissing(Scope),
    /// The call is about a session, and the token belongs to none.
    #[error("the token belongs to no session")]
    SessionRequired,
}

kernel::id_kind!(TokenIdKind, "token");

/// The id of a token. A token states its ULID alone.
pub type TokenId = Id<TokenIdKind>;

/// A token of a session. Each token of a session has a number, and only the newest ones are valid
/// ([`Session::admits`](crate::session::Session::admits)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionToken {
    pub session: SessionId,
    /// How many tokens of the session were made with this one. A token of an earlier version has the number 0.
    pub number: u32,
}

/// The claims of an embed token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The token's id.
    pub id: TokenId,
    /// The publishable key that bootstrapped the widget. The token ends with it.
    pub key: KeyId,
    /// The partner and mode of the widget.
    pub tenant: Tenant,
    /// The session that the token is bound to, with the token's number; `None` for the open widget.
    pub session: Option<SessionToken>,
    /// The permissions.
    pub scopes: Scopes,
    /// When the token was issued, in whole seconds.
    pub issued_at: Timestamp,
    /// When the token expires, in whole seconds. It is valid while `now < expires_at`.
    pub expires_at: Timestamp,
}

/// The claims in the form that is encoded in the token.
#[derive(Deserialize)]
struct Written {
    iss: String,
    aud: String,
    jti: String,
    key: String,
    sub: String,
    mode: String,
    sid: Option<String>,
    num: Option<u32>,
    scopes: Vec<String>,
    iat: i64,
    exp: i64,
}

impl Claims {
    /// Checks that the token has a scope.
    ///
    /// # Errors
    /// [`TokenDenial::ScopeMissing`].
    pub fn require(&self, scope: Scope) -> Result<(), TokenDenial> {
        if self.scopes.allow(scope) {
            Ok(())
        } else {
            Err(TokenDenial::ScopeMissing(scope))
        }
    }

    /// The session of the token, for a call that needs a scope.
    ///
    /// # Errors
    /// The first [`TokenDenial`] that applies.
    pub fn session_for(&self, scope: Scope) -> Result<SessionToken, TokenDenial> {
        self.require(scope)?;
        self.session.ok_or(TokenDenial::SessionRequired)
    }

    /// Signs the claims.
    ///
    /// # Errors
    /// [`Unsigned`] if the claims cannot be serialized.
    pub fn sign(&self, key: &TokenKey) -> Result<String, Unsigned> {
        let claims: Map<String, Value> = [
            ("iss", json!(ISSUER)),
            ("aud", json!(AUDIENCE)),
            ("jti", json!(self.id.ulid().to_string())),
            ("key", json!(self.key.to_string())),
            ("sub", json!(self.tenant.partner.as_str())),
            ("mode", json!(self.tenant.mode.as_str())),
            ("sid", json!(self.session.map(|it| it.session.to_string()))),
            ("num", json!(self.session.map(|it| it.number))),
            ("scopes", json!(self.scopes.words())),
            ("iat", json!(self.issued_at.seconds())),
            ("exp", json!(self.expires_at.seconds())),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        key.sign(&claims)
    }

    /// Verifies a token: the signature, issuer, audience, mode and expiry. `None` if one of them is wrong.
    #[must_use]
    pub fn open(token: &str, key: &TokenKey, mode: Mode, now: Timestamp) -> Option<Self> {
        let written: Written = key.open(token)?;
        let session = match &written.sid {
            Some(text) => Some(SessionToken {
                session: SessionId::parse(text)?.in_mode(mode)?,
                number: written.num.unwrap_or_default(),
            }),
            None => None,
        };
        let claims = Self {
            id: TokenId::parse(&format!("{}_{mode}_{}", TokenIdKind::PREFIX, written.jti))?,
            key: KeyId::parse(&written.key)?.in_mode(mode)?,
            tenant: Tenant {
                partner: PartnerId::parse(&written.sub)?,
                mode: Mode::parse(&written.mode)?,
            },
            session,
            scopes: Scopes::requested(Some(&written.scopes)).ok()?,
            issued_at: seconds(written.iat)?,
            expires_at: seconds(written.exp)?,
        };
        let ours = written.iss == ISSUER && written.aud == AUDIENCE;
        let valid = claims.tenant.mode == mode && now < claims.expires_at;
        (ours && valid).then_some(claims)
    }
}

/// An instant of whole seconds, which is the precision of tokens.
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

    const ID: &str = "01HF7YAT00408104G208104081";
    const KEY: &str = "key_test_01HF7YAT00408104G208104082";

    fn claims() -> Claims {
        Claims {
            id: TokenId::parse(&format!("token_test_{ID}")).unwrap(),
            key: KeyId::parse(KEY).unwrap(),
            tenant: Tenant {
                partner: PartnerId::parse("acme").unwrap(),
                mode: Mode::Test,
            },
            session: Some(SessionToken {
                session: SessionId::parse("gs_test_01HF7YAT00408104G208104081").unwrap(),
                number: 7,
            }),
            scopes: Scopes::requested(None).unwrap(),
            issued_at: seconds(1_700_000_000).unwrap(),
            expires_at: seconds(1_700_003_600).unwrap(),
        }
    }

    // rule: gate.bootstrap.token-claims
    #[test]
    fn token_reads_back_until_expiry() {
        let token = claims().sign(&key()).unwrap();
        let at = |millis: i64| Timestamp::from_millis(millis).unwrap();
        let open = |at| Claims::open(&token, &key(), Mode::Test, at);
        assert_eq!(open(at(1_700_003_599_999)), Some(claims()));
        assert_eq!(open(at(1_700_003_600_000)), None);
        let live = Claims::open(&token, &key(), Mode::Live, at(1_700_000_000_000));
        assert_eq!(live, None);
        let written: Map<String, Value> = key().open(&token).unwrap();
        let names: Vec<&str> = written.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "iss", "aud", "jti", "key", "sub", "mode", "sid", "num", "scopes", "iat", "exp"
            ]
        );
        assert_eq!(written["num"], 7);
    }

    #[test]
    fn token_of_an_earlier_version_has_number_0() {
        let token = claims().sign(&key()).unwrap();
        let mut written: Map<String, Value> = key().open(&token).unwrap();
        written.remove("num");
        let token = key().sign(&written).unwrap();
        let at = seconds(1_700_000_000).unwrap();
        let opened = Claims::open(&token, &key(), Mode::Test, at).unwrap();
        assert_eq!(opened.session.unwrap().number, 0);
    }

    // rule: gate.bootstrap.token-claims
    #[test]
    fn claims_of_another_kind_are_refused() {
        let good = json!({
            "iss": ISSUER, "aud": AUDIENCE, "jti": ID, "key": KEY, "sub": "acme", "mode": "test", "sid": null, "scopes": [], "iat": 0,
            "exp": 10,
        });
        let open = |value: &Value| {
            let token = key().sign(value.as_object().unwrap()).unwrap();
            Claims::open(&token, &key(), Mode::Test, seconds(1).unwrap())
        };
        assert!(open(&good).is_some());
        for (name, value) in [
            ("iss", json!("other")),
            ("aud", json!("other")),
            ("aud", json!(null)),
            ("jti", json!("0123456789abcdef0123456789abcdef")),
            ("jti", json!(ID.to_lowercase())),
            ("jti", json!(ID[1..])),
            ("jti", json!(format!("{ID}0"))),
            ("key", json!(null)),
            ("key", json!(ID)),
            ("key", json!("key_live_01HF7YAT00408104G208104082")),
            ("sub", json!("Acme")),
            ("mode", json!("live")),
            ("sid", json!("gs_live_01HF7YAT00408104G208104081")),
            ("sid", json!("pq_test_01HF7YAT00408104G208104081")),
            ("num", json!("1")),
            ("num", json!(-1)),
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

    // rule: gate.embed.scopes, gate.embed.session-required
    #[test]
    fn call_needs_its_scope_and_then_a_session() {
        let session = claims().session;
        let read = Scopes::requested(Some(&["session:read".to_owned()])).unwrap();
        let narrow = Claims {
            scopes: read,
            session: None,
            ..claims()
        };
        let missing = TokenDenial::ScopeMissing(Scope::SessionPay);
        assert_eq!(narrow.require(Scope::SessionRead), Ok(()));
        assert_eq!(narrow.session_for(Scope::SessionPay), Err(missing));
        let none = narrow.session_for(Scope::SessionRead);
        assert_eq!(none, Err(TokenDenial::SessionRequired));
        assert_eq!(claims().session_for(Scope::SessionPay).ok(), session);
    }

    // rule: gate.bootstrap.scopes
    #[test]
    fn requested_scopes_narrow_token() {
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
