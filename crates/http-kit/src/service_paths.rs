//! Which service serves a path, so that the response to a call of the wrong service names the right one.
//!
//! Neither service knows the other, so the list is here. The acceptance tests compare it with the published documents.

use partner_core::events::Service;

/// The first segments below `/v1/` of a service's operations.
const fn segments(service: Service) -> &'static [&'static str] {
    match service {
        Service::Pools => &["pools"],
        Service::Gate => &[
            "branding",
            "capabilities",
            "customers",
            "embed",
            "gate_sessions",
            "quotes",
            "rails",
            "test_helpers",
            "transactions",
            "webhooks",
        ],
    }
}

/// The other service that a path belongs to, and the path's first segment. `None` for a path of no other service.
pub(crate) fn of_other(own: Service, path: &str) -> Option<(Service, &'static str)> {
    let first = path.strip_prefix("/v1/")?.split('/').next()?;
    let others = Service::ALL.into_iter().filter(|service| *service != own);
    others
        .flat_map(|service| segments(service).iter().map(move |it| (service, *it)))
        .find(|(_, segment)| *segment == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_belongs_to_the_other_service_by_its_first_segment() {
        for (own, path, found) in [
            (Service::Pools, "/v1/gate_sessions", Some("gate_sessions")),
            (Service::Pools, "/v1/embed/session", Some("embed")),
            (Service::Gate, "/v1/pools", Some("pools")),
            (Service::Gate, "/v1/pools/EUR-USDT/quote", Some("pools")),
            (Service::Gate, "/v1/gate_sessions/a/b", None),
            (Service::Pools, "/v1/pools/a/b/c", None),
            (Service::Pools, "/v1/gate_session", None),
            (Service::Pools, "/gate_sessions", None),
            (Service::Pools, "/v1/", None),
        ] {
            let other = of_other(own, path);
            assert_eq!(other.map(|(_, segment)| segment), found, "{path}");
            assert!(other.is_none_or(|(service, _)| service != own), "{path}");
        }
    }
}
