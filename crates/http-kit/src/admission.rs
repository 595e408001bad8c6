//! Limits the connections of a listener: in total, for each client network, and in a reserved
//! share.
//!
//! The reserved share serves health checks after a limit is reached. The path of a request is known
//! only after its head was read, so a connection over a limit first takes a reserved slot. It has
//! one second to send its head. A health check gets its response, any other request gets 503
//! `overloaded`, and the connection closes after this one response. A connection that finds no
//! reserved slot gets 503 without a read of its request, or is closed if many such responses are
//! in flight.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use partner_core::throttle::ClientNetwork;

use crate::client_ip::TrustedProxies;

/// How many connections a listener serves at once.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// All connections, without the reserved share.
    pub connections: usize,
    /// Connections of one client network: an IPv4 address or an IPv6 /64. A trusted proxy carries
    /// many clients, so this limit does not apply to it.
    pub per_network: usize,
    /// Connections over a limit that may still send a health check.
    pub reserved: usize,
    /// The proxies that are exempt from [`Self::per_network`].
    pub proxies: TrustedProxies,
}

/// Slots of the reserved share that one client network may take.
const RESERVED_PER_NETWORK: usize = 4;
/// How many connections may be refused with a response at the same time.
pub(crate) const REFUSALS: usize = 64;

impl Bounds {
    /// File descriptors that a listener may need in addition to [`Self::connections`]: for the
    /// reserved share, and for refusals in flight.
    #[must_use]
    pub const fn spare_descriptors(&self) -> usize {
        self.reserved.saturating_add(REFUSALS)
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 8192,
            per_network: 256,
            reserved: 128,
            proxies: TrustedProxies::default(),
        }
    }
}

/// The requests that a connection may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// All requests.
    Full,
    /// One health check.
    Health,
}

/// Assigns slots to connections.
#[derive(Debug)]
pub(crate) struct Admission {
    bounds: Bounds,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: Used,
    /// Only networks with a slot have an entry, so the number of slots bounds the map.
    networks: HashMap<ClientNetwork, Used>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Used {
    full: usize,
    reserved: usize,
}

impl Used {
    fn of(&mut self, share: Share) -> &mut usize {
        match share {
            Share::Full => &mut self.full,
            Share::Health => &mut self.reserved,
        }
    }
}

impl Admission {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self {
            bounds,
            taken: Mutex::default(),
        })
    }

    /// Takes a slot for a connection from this address; `None` if the reserved share is full too.
    pub(crate) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Slot> {
        let network = ClientNetwork::of(peer);
        let bounds = &self.bounds;
        let mut taken = self.taken.lock();
        let (all, own) = (
            taken.all,
            taken.networks.get(&network).copied().unwrap_or_default(),
        );
        let is_over_limit = own.full >= bounds.per_network && !bounds.proxies.trusts(peer);
        let share = if all.full < bounds.connections && !is_over_limit {
            Share::Full
        } else if all.reserved < bounds.reserved && own.reserved < RESERVED_PER_NETWORK {
            Share::Health
        } else {
            return None;
        };
        *taken.all.of(share) += 1;
        *taken.networks.entry(network).or_default().of(share) += 1;
        Some(Slot {
            admission: Arc::clone(self),
            network,
            share,
        })
    }

    fn release(&self, network: ClientNetwork, share: Share) {
        let mut taken = self.taken.lock();
        let all = taken.all.of(share);
        *all = all.saturating_sub(1);
        let Some(own) = taken.networks.get_mut(&network) else {
            return;
        };
        let left = own.of(share);
        *left = left.saturating_sub(1);
        if own.full == 0 && own.reserved == 0 {
            taken.networks.remove(&network);
            let live = taken.networks.len();
            if taken.networks.capacity() > 1024 && taken.networks.capacity() / 8 > live {
                taken.networks.shrink_to(live.saturating_mul(2));
            }
        }
    }
}

/// A connection's slot, released on drop.
pub(crate) struct Slot {
    admission: Arc<Admission>,
    network: ClientNetwork,
    pub(crate) share: Share,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.admission.release(self.network, self.share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(connections: usize, per_network: usize, reserved: usize) -> Arc<Admission> {
        Admission::new(Bounds {
            connections,
            per_network,
            reserved,
            proxies: TrustedProxies::new(["10.0.0.0/8".parse().unwrap()]),
        })
    }

    fn share(admission: &Arc<Admission>, held: &mut Vec<Slot>, peer: &str) -> Option<Share> {
        let slot = admission.admit(peer.parse().unwrap())?;
        let share = slot.share;
        held.push(slot);
        Some(share)
    }

    // rule: base.connections
    #[test]
    fn network_over_its_bound_gets_health_only_and_others_are_served() {
        let admission = admission(100, 2, 100);
        let mut held = Vec::new();
        for (peer, expected) in [
            ("2001:db8:0:1::1", Some(Share::Full)),
            ("2001:db8:0:1::2", Some(Share::Full)),
            ("2001:db8:0:1::3", Some(Share::Health)),
            ("2001:db8:0:2::1", Some(Share::Full)),
            ("203.0.113.1", Some(Share::Full)),
            ("::ffff:203.0.113.1", Some(Share::Full)),
            ("203.0.113.1", Some(Share::Health)),
        ] {
            assert_eq!(share(&admission, &mut held, peer), expected, "{peer}");
        }
        for _ in 0..RESERVED_PER_NETWORK - 1 {
            let health = share(&admission, &mut held, "203.0.113.1");
            assert_eq!(health, Some(Share::Health));
        }
        assert_eq!(share(&admission, &mut held, "203.0.113.1"), None);
        held.clear();
        assert!(admission.taken.lock().networks.is_empty());
        let again = share(&admission, &mut held, "203.0.113.1");
        assert_eq!(again, Some(Share::Full));
    }

    // rule: base.connections
    #[test]
    fn trusted_proxies_are_bound_by_the_total_only() {
        let admission = admission(5, 2, 1);
        let mut held = Vec::new();
        for _ in 0..5 {
            let proxied = share(&admission, &mut held, "10.1.2.3");
            assert_eq!(proxied, Some(Share::Full));
        }
        let over = share(&admission, &mut held, "203.0.113.1");
        assert_eq!(over, Some(Share::Health));
        assert_eq!(share(&admission, &mut held, "203.0.113.2"), None);
        assert_eq!(share(&admission, &mut held, "10.1.2.3"), None);
        held.truncate(4);
        let freed = share(&admission, &mut held, "203.0.113.2");
        assert_eq!(freed, Some(Share::Full));
    }
}
