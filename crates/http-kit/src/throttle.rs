//! Throttles as clients see them: the headers of every response, and the 429.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use instruments::http;
use partner_core::throttle::{ThrottleDecision, Tier};

use crate::codes;
use crate::error::ApiError;

/// The header that clients read after every 429 of a throttle, whichever tier is exhausted.
static RETRY_AFTER_SHORT: HeaderName = HeaderName::from_static("retry-after-short");

/// Whose requests a limit counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitBy {
    /// Requests with one API key; checked after the key.
    Credential,
    /// Requests of one client network, an IPv4 address or an IPv6 /64; checked first.
    Client,
    /// Requests of one client network with one API key or token; checked after it.
    CredentialFromClient,
    /// Requests of one client network with the tokens of one session; checked after the token. A token without a
    /// session has no such limit.
    SessionFromClient,
}

impl LimitBy {
    /// The label in metrics.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Credential => "credential",
            Self::Client => "address",
            Self::CredentialFromClient => "credential_and_address",
            Self::SessionFromClient => "session_and_address",
        }
    }
}

/// The limit of a route or of a group of routes.
#[derive(Debug, Clone)]
pub struct Limit(Arc<Fields>);

#[derive(Debug)]
struct Fields {
    group: &'static str,
    scope: LimitBy,
    tiers: Box<[Tier]>,
    ceiling: Option<Ceiling>,
    headers: Box<[TierHeaders]>,
}

/// Tiers that count a limit's admitted requests again, together with those of other callers.
#[derive(Debug, Clone)]
pub(crate) struct Ceiling {
    /// Whose requests are counted together.
    pub(crate) scope: LimitBy,
    pub(crate) tiers: Box<[Tier]>,
}

/// The header names and the constant value of one tier, built once.
#[derive(Debug)]
struct TierHeaders {
    limit: HeaderName,
    remaining: HeaderName,
    reset: HeaderName,
    retry_after: HeaderName,
}

impl Limit {
    /// `group` names the bucket. Routes with the same group share one bucket.
    #[must_use]
    pub fn new(group: &'static str, scope: LimitBy, tiers: impl Into<Box<[Tier]>>) -> Self {
        let tiers = tiers.into();
        http::limited(group, scope.as_str(), tiers.iter().map(|tier| tier.name));
        Self::of_tiers(group, scope, tiers, None)
    }

    /// Adds a ceiling: tiers that count every admitted request again, by a wider scope. Their names differ from the names of
    /// the limit's own tiers.
    #[must_use]
    pub fn under_ceiling(&self, scope: LimitBy, tiers: impl Into<Box<[Tier]>>) -> Self {
        let ceiling = Ceiling {
            scope,
            tiers: tiers.into(),
        };
        let names = ceiling.tiers.iter().map(|tier| tier.name);
        http::limited(self.group(), scope.as_str(), names);
        let tiers = self.0.tiers.clone();
        Self::of_tiers(self.group(), self.scope(), tiers, Some(ceiling))
    }

    fn of_tiers(
        group: &'static str,
        scope: LimitBy,
        tiers: Box<[Tier]>,
        ceiling: Option<Ceiling>,
    ) -> Self {
        let above = ceiling.iter().flat_map(|ceiling| &ceiling.tiers);
        let names = tiers.iter().chain(above).map(|tier| tier.name);
        Self(Arc::new(Fields {
            group,
            scope,
            headers: names.filter_map(TierHeaders::of).collect(),
            tiers,
            ceiling,
        }))
    }

    /// The same limit with this tier in place of its own.
    pub(crate) fn with_tier(&self, tier: Tier) -> Self {
        let ceiling = self.0.ceiling.clone();
        Self::of_tiers(self.group(), self.scope(), [tier].into(), ceiling)
    }

    /// The same limit with another scope. Failed key lookups are counted by client address, with
    /// the tiers of the routes.
    #[must_use]
    pub fn with_scope(&self, scope: LimitBy) -> Self {
        Self::new(self.0.group, scope, self.0.tiers.clone())
    }

    #[must_use]
    pub fn group(&self) -> &'static str {
        self.0.group
    }

    /// Whose requests the limit counts together.
    #[must_use]
    pub fn scope(&self) -> LimitBy {
        self.0.scope
    }

    #[must_use]
    pub fn tiers(&self) -> &[Tier] {
        &self.0.tiers
    }

    /// The ceiling, if the limit has one.
    pub(crate) fn ceiling(&self) -> Option<&Ceiling> {
        self.0.ceiling.as_ref()
    }

    /// The counter of a tier: of the limit itself or of the ceiling.
    fn scope_of_tier(&self, tier: &str) -> LimitBy {
        let ceiling = self.ceiling();
        let has_tier = |ceiling: &&Ceiling| ceiling.tiers.iter().any(|known| known.name == tier);
        let ceiling = ceiling.filter(has_tier);
        ceiling.map_or(self.0.scope, |ceiling| ceiling.scope)
    }

    /// Writes the status of each tier to the headers, and after a refusal the seconds to wait.
    pub(crate) fn write(&self, decision: &ThrottleDecision, headers: &mut HeaderMap) {
        // Reserves space also for the headers of the outermost layer.
        headers.reserve(3 * decision.statuses.len() + 5);
        let mut wait = 0;
        for (names, status) in self.0.headers.iter().zip(&decision.statuses) {
            let reset = whole_seconds(status.reset);
            headers.insert(&names.limit, number(u64::from(status.limit)));
            headers.insert(&names.remaining, number(u64::from(status.remaining)));
            headers.insert(&names.reset, number(reset));
            if status.exhausted {
                let after = reset.max(1);
                headers.insert(&names.retry_after, HeaderValue::from(after));
                wait = wait.max(after);
            }
        }
        if wait > 0 {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait));
            headers.insert(&RETRY_AFTER_SHORT, HeaderValue::from(wait));
        }
    }
}

impl TierHeaders {
    /// `None` if the tier's name is not a valid header token. The tier is enforced but not shown.
    fn of(tier: &str) -> Option<Self> {
        let name =
            |prefix: &str| HeaderName::from_bytes(format!("{prefix}-{tier}").as_bytes()).ok();
        Some(Self {
            limit: name("x-ratelimit-limit")?,
            remaining: name("x-ratelimit-remaining")?,
            reset: name("x-ratelimit-reset")?,
            retry_after: name("retry-after")?,
        })
    }
}

/// Returns 429 `rate_limited` and counts the refusal, unless the request is admitted. The layer that consulted the throttle writes
/// the headers.
pub(crate) fn refuse_over_limit(limit: &Limit, decision: &ThrottleDecision) -> Option<ApiError> {
    if decision.admitted() {
        return None;
    }
    let exhausted = decision.statuses.iter().filter(|status| status.exhausted);
    for status in exhausted {
        http::throttled(
            limit.group(),
            limit.scope_of_tier(status.tier).as_str(),
            status.tier,
        );
    }
    Some(ApiError::new(
        codes::RATE_LIMITED,
        "Too many requests. Wait as long as `Retry-After-short` says, with some jitter.",
    ))
}

/// The header value of a number. Responses need the same small numbers often, so their texts are
/// cached.
fn number(value: u64) -> HeaderValue {
    static SMALL: LazyLock<Vec<HeaderValue>> =
        LazyLock::new(|| (0..=3600_u32).map(HeaderValue::from).collect());
    let known = usize::try_from(value).ok().and_then(|at| SMALL.get(at));
    known.cloned().unwrap_or_else(|| HeaderValue::from(value))
}

/// Rounds up to whole seconds, so that a client that waits this long is not early.
pub(crate) fn whole_seconds(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use partner_core::throttle::TierStatus;

    use super::*;

    fn tier(name: &'static str, limit: u32, seconds: u64) -> Tier {
        Tier {
            name,
            limit,
            per: Duration::from_secs(seconds),
        }
    }

    fn status(tier: &'static str, remaining: u32, millis: u64, exhausted: bool) -> TierStatus {
        TierStatus {
            tier,
            limit: 10,
            remaining,
            reset: Duration::from_millis(millis),
            exhausted,
        }
    }

    #[test]
    fn refusal_has_three_headers_per_tier_and_waits() {
        let tiers = [
            tier("short", 10, 10),
            tier("medium", 10, 60),
            tier("long", 10, 3600),
        ];
        let limit = Limit::new("pools", LimitBy::Credential, tiers);
        let mut headers = HeaderMap::new();
        let decision = ThrottleDecision {
            statuses: vec![
                status("short", 0, 1, true),
                status("medium", 0, 59_001, true),
                status("long", 7, 3_600_000, false),
            ],
        };
        limit.write(&decision, &mut headers);
        let mut lines: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        assert_eq!(
            lines,
            [
                "retry-after-medium: 60",
                "retry-after-short: 60",
                "retry-after: 60",
                "x-ratelimit-limit-long: 10",
                "x-ratelimit-limit-medium: 10",
                "x-ratelimit-limit-short: 10",
                "x-ratelimit-remaining-long: 7",
                "x-ratelimit-remaining-medium: 0",
                "x-ratelimit-remaining-short: 0",
                "x-ratelimit-reset-long: 3600",
                "x-ratelimit-reset-medium: 60",
                "x-ratelimit-reset-short: 1",
            ]
        );
    }

    #[test]
    fn admitted_request_has_no_retry_after() {
        let limit = Limit::new("pools", LimitBy::Credential, [tier("short", 10, 1)]);
        let mut headers = HeaderMap::new();
        let decision = ThrottleDecision {
            statuses: vec![status("short", 9, 1000, false)],
        };
        limit.write(&decision, &mut headers);
        assert_eq!(headers.len(), 3);
        assert_eq!(headers["x-ratelimit-reset-short"], "1");
    }
}
