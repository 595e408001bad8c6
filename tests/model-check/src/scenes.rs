//! The scenes. Together they are the races R1 to R8, R11 to R15, R21 and R23, each with crashes and lost responses.

use pools_core::quote::Side;

use crate::request::Ask;
use crate::scene::{Meets, Scene};

/// A scene without requests or faults, on which the others are built.
fn quiet(name: &'static str) -> Scene {
    Scene {
        name,
        sides: vec![Side::OnRamp],
        funds: (1, 0),
        cap: None,
        asks: Vec::new(),
        at_once: 2,
        servers: 1,
        workers: 0,
        ticks: 0,
        faults: 0,
        crashes: 0,
        meets: Vec::new(),
    }
}

const fn transact(quote: usize, key: u8) -> Ask {
    Ask::Transact { quote, key }
}

/// Every scene, the smallest first. All of them are explored completely, in a minute or two together.
pub(crate) fn all() -> Vec<Scene> {
    vec![
        given_back(),
        cap_for_one(),
        funds_for_one(),
        one_quote(),
        three_at_once(),
        polls(),
        deliveries(),
    ]
}

/// Larger scenes, for a machine with hours and memory to spare.
pub(crate) fn long() -> Vec<Scene> {
    vec![
        Scene {
            name: "cap for one, long",
            at_once: 3,
            ..cap_for_one()
        },
        Scene {
            name: "one quote, long",
            at_once: 3,
            ..one_quote()
        },
        Scene {
            name: "polls, long",
            asks: vec![(transact(0, 1), 1), (Ask::Poll { quote: 0 }, 4)],
            at_once: 3,
            ..polls()
        },
        Scene {
            name: "deliveries, long",
            at_once: 2,
            ticks: 2,
            ..deliveries()
        },
    ]
}

/// R1, R2, R5, R6, R7: one quote executed under two keys, rejected, read, and expiring.
fn one_quote() -> Scene {
    Scene {
        asks: vec![
            (transact(0, 1), 2),
            (transact(0, 2), 1),
            (Ask::Reject { quote: 0 }, 1),
            (Ask::Read { quote: 0 }, 1),
        ],
        servers: 2,
        ticks: 2,
        faults: 1,
        crashes: 1,
        meets: vec![Meets::Rejected, Meets::Expired, Meets::Orphaned],
        ..quiet("one quote")
    }
}

/// The scene "one quote" with three concurrent requests and without a crash.
fn three_at_once() -> Scene {
    Scene {
        name: "three at once",
        at_once: 3,
        crashes: 0,
        ..one_quote()
    }
}

/// R4: the cap allows both trades. The release of a failed trade must not subtract the other's count.
fn given_back() -> Scene {
    Scene {
        sides: vec![Side::OnRamp, Side::OffRamp],
        funds: (1, 1),
        cap: Some(200),
        asks: vec![
            (transact(0, 1), 1),
            (transact(1, 2), 1),
            (Ask::Poll { quote: 0 }, 2),
        ],
        ticks: 1,
        meets: vec![
            Meets::TwoTrades,
            Meets::Failed,
            Meets::Released,
            Meets::LeaseTaken,
        ],
        ..quiet("given back") // plain: allow
    }
}

/// R3, R8: two quotes with funds for one of them, a credit, and a key used for both.
fn funds_for_one() -> Scene {
    Scene {
        sides: vec![Side::OnRamp, Side::OnRamp],
        asks: vec![
            (transact(0, 1), 1),
            (transact(1, 2), 1),
            (transact(1, 1), 1),
            (Ask::Credit, 2),
            (Ask::Poll { quote: 0 }, 1),
        ],
        at_once: 3,
        servers: 2,
        faults: 1,
        crashes: 1,
        meets: vec![Meets::TwoTrades],
        ..quiet("funds for one")
    }
}

/// R4: two quotes with room under the cap for one, which a failed trade or the window frees.
fn cap_for_one() -> Scene {
    Scene {
        sides: vec![Side::OnRamp, Side::OffRamp],
        funds: (1, 1),
        cap: Some(100),
        asks: vec![
            (transact(0, 1), 1),
            (transact(1, 2), 2),
            (Ask::Poll { quote: 0 }, 2),
        ],
        servers: 2,
        ticks: 1,
        faults: 1,
        meets: vec![Meets::TwoTrades, Meets::Failed],
        ..quiet("cap for one")
    }
}

/// R11, R12, R13, R15: polls of one trade, late responses, leases that expire, reports out of order.
fn polls() -> Scene {
    Scene {
        asks: vec![(transact(0, 1), 1), (Ask::Poll { quote: 0 }, 3)],
        servers: 2,
        ticks: 2,
        faults: 1,
        crashes: 1,
        meets: vec![
            Meets::Settled,
            Meets::Failed,
            Meets::Released,
            Meets::Returned,
            Meets::ReturnedUnseen,
            Meets::LeaseTaken,
        ],
        ..quiet("polls")
    }
}

/// R21, R23: two workers on the deliveries of two trades, with leases that expire and workers that die.
fn deliveries() -> Scene {
    Scene {
        sides: vec![Side::OnRamp, Side::OffRamp],
        funds: (1, 1),
        asks: vec![
            (transact(0, 1), 1),
            (transact(1, 2), 1),
            (Ask::Poll { quote: 0 }, 1),
            (Ask::Poll { quote: 1 }, 1),
        ],
        at_once: 1,
        workers: 2,
        ticks: 1,
        faults: 1,
        crashes: 1,
        meets: vec![Meets::Settled, Meets::Delivered, Meets::Abandoned],
        ..quiet("deliveries")
    }
}

/// A scene for tests of the check itself.
#[cfg(test)]
pub(crate) fn small() -> Scene {
    Scene {
        asks: vec![
            (transact(0, 1), 1),
            (Ask::Reject { quote: 0 }, 1),
            (Ask::Poll { quote: 0 }, 2),
        ],
        crashes: 1,
        meets: vec![Meets::Rejected, Meets::Settled],
        ..quiet("small")
    }
}

/// A scene for tests of the check itself, in which no purchase is possible.
#[cfg(test)]
pub(crate) fn without_money() -> Scene {
    Scene {
        funds: (0, 0),
        meets: vec![Meets::Settled],
        ..small()
    }
}
