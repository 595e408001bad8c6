//! Throttles as a client sees them: the headers of every answer, and the 429.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use instruments::http;
use partner_core::throttle::{ThrottleDecision, Tier};

use crate::error::ApiError;

/// Whose requests a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitBy {
    /// Those of one API key; judged after the key.
    Credential,
    /// Those of one client network: an IPv4 address or an IPv6 /64; judged before anything else.
    Client,
    /// Those of one client network with one API key; judged after the key.
    CredentialFromClient,
}

impl LimitBy {
    /// The word of metrics.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Credential => "credential",
            Self::Client => "address",
            Self::CredentialFromClient => "credential_and_address",
        }
    }
}

/// The limit of a route or of a group of routes.
#[derive(Debug, Clone)]
pub struct Limit {
    fields: Arc<Fields>,
}

#[derive(Debug)]
struct Fields {
    group: &'static str,
    whose: LimitBy,
    tiers: Box<[Tier]>,
    ceiling: Box<[Tier]>,
    headers: Box<[TierHeaders]>,
}

/// The names and the constant value of one tier's headers, made once.
#[derive(Debug)]
struct TierHeaders {
    limit: HeaderName,
    remaining: HeaderName,
    reset: HeaderName,
    retry_after: HeaderName,
}

impl Limit {
    /// `group` names the bucket: routes with the same group share one.
    #[must_use]
    pub fn new(group: &'static str, whose: LimitBy, tiers: impl Into<Box<[Tier]>>) -> Self {
        let tiers = tiers.into();
        http::limited(group, whose.as_str(), tiers.iter().map(|tier| tier.name));
        Self::of_tiers(group, whose, tiers, Box::default())
    }

    /// The same limit under a ceiling: these tiers count every admitted request of one API key,
    /// from all clients together. Their names differ from those of the limit's own tiers.
    #[must_use]
    pub fn under_ceiling(&self, ceiling: impl Into<Box<[Tier]>>) -> Self {
        let ceiling = ceiling.into();
        let names = ceiling.iter().map(|tier| tier.name);
        http::limited(self.group(), LimitBy::Credential.as_str(), names);
        Self::of_tiers(
            self.group(),
            self.whose(),
            self.fields.tiers.clone(),
            ceiling,
        )
    }

    fn of_tiers(
        group: &'static str,
        whose: LimitBy,
        tiers: Box<[Tier]>,
        ceiling: Box<[Tier]>,
    ) -> Self {
        let headers = tiers
            .iter()
            .chain(&ceiling)
            .filter_map(|tier| TierHeaders::of(tier.name))
            .collect();
        let fields = Fields {
            group,
            whose,
            tiers,
            ceiling,
            headers,
        };
        Self {
            fields: Arc::new(fields),
        }
    }

    /// The same limit with this tier in place of its own.
    pub(crate) fn with_tier(&self, tier: Tier) -> Self {
        let ceiling = self.fields.ceiling.clone();
        Self::of_tiers(self.group(), self.whose(), [tier].into(), ceiling)
    }

    /// The same limit counted for somebody else, as the guessing of keys is counted against
    /// the client's address under the numbers of the routes.
    #[must_use]
    pub fn counting(&self, whose: LimitBy) -> Self {
        Self::new(self.fields.group, whose, self.fields.tiers.clone())
    }

    /// The name of the bucket.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.fields.group
    }

    /// Whose requests it counts.
    #[must_use]
    pub fn whose(&self) -> LimitBy {
        self.fields.whose
    }

    /// Its tiers.
    #[must_use]
    pub fn tiers(&self) -> &[Tier] {
        &self.fields.tiers
    }

    /// The tiers that count all clients of one API key together.
    #[must_use]
    pub fn ceiling(&self) -> &[Tier] {
        &self.fields.ceiling
    }

    /// What counts a tier: the limit's own bucket or the ceiling's.
    fn whose_tier(&self, tier: &str) -> LimitBy {
        if self.fields.ceiling.iter().any(|known| known.name == tier) {
            LimitBy::Credential
        } else {
            self.fields.whose
        }
    }

    /// Says in the headers where the caller stands in each tier; on a refusal also when to
    /// come back.
    pub(crate) fn write(&self, verdict: &ThrottleDecision, headers: &mut HeaderMap) {
        // And room for what the outermost layer adds.
        headers.reserve(3 * verdict.standings.len() + 4);
        let mut wait = 0;
        for (names, standing) in self.fields.headers.iter().zip(&verdict.standings) {
            let reset = whole_seconds(standing.reset);
            headers.insert(&names.limit, number(u64::from(standing.limit)));
            headers.insert(&names.remaining, number(u64::from(standing.remaining)));
            headers.insert(&names.reset, number(reset));
            if standing.exhausted {
                let after = reset.max(1);
                headers.insert(&names.retry_after, HeaderValue::from(after));
                wait = wait.max(after);
            }
        }
        if wait > 0 {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
    }
}

impl TierHeaders {
    /// `None` for a tier whose name is no header token; it is enforced without being shown.
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

/// 429 `rate_limited`. The headers are written by the layer that asked the throttle.
pub(crate) fn rate_limited(limit: &Limit, verdict: &ThrottleDecision) -> ApiError {
    let full = verdict
        .standings
        .iter()
        .filter(|standing| standing.exhausted);
    for standing in full {
        http::throttled(
            limit.group(),
            limit.whose_tier(standing.tier).as_str(),
            standing.tier,
        );
    }
    ApiError::rate_limited(
        "rate_limited",
        "Too many requests. Wait as long as the `Retry-After` headers say, with some jitter.",
    )
}

/// Every answer carries a handful of small numbers; they are written once.
fn number(value: u64) -> HeaderValue {
    static SMALL: LazyLock<Vec<HeaderValue>> =
        LazyLock::new(|| (0..=3600_u32).map(HeaderValue::from).collect());
    let known = usize::try_from(value).ok().and_then(|at| SMALL.get(at));
    known.cloned().unwrap_or_else(|| HeaderValue::from(value))
}

/// Rounded up, so that whoever waits that long is not early.
fn whole_seconds(span: Duration) -> u64 {
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

    fn standing(tier: &'static str, remaining: u32, millis: u64, exhausted: bool) -> TierStatus {
        TierStatus {
            tier,
            limit: 10,
            remaining,
            reset: Duration::from_millis(millis),
            exhausted,
        }
    }

    #[test]
    fn writes_three_headers_a_tier_and_the_waits_of_a_refusal() {
        let tiers = [
            tier("short", 10, 10),
            tier("medium", 10, 60),
            tier("long", 10, 3600),
        ];
        let limit = Limit::new("pools", LimitBy::Credential, tiers);
        let mut headers = HeaderMap::new();
        let verdict = ThrottleDecision {
            standings: vec![
                standing("short", 0, 1, true),
                standing("medium", 0, 59_001, true),
                standing("long", 7, 3_600_000, false),
            ],
        };
        limit.write(&verdict, &mut headers);
        let mut lines: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        assert_eq!(
            lines,
            [
                "retry-after-medium: 60",
                "retry-after-short: 1",
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
    fn an_admitted_request_is_not_told_to_wait() {
        let limit = Limit::new("pools", LimitBy::Credential, [tier("short", 10, 1)]);
        let mut headers = HeaderMap::new();
        let verdict = ThrottleDecision {
            standings: vec![standing("short", 9, 1000, false)],
        };
        limit.write(&verdict, &mut headers);
        assert_eq!(headers.len(), 3);
        assert_eq!(headers["x-ratelimit-reset-short"], "1");
    }
}
