//! Sealed values of every column are paged, and replaced only if unchanged.

use kernel::{Cas, Mode};
use partner_core::Tenant;
use partner_core::key::{KeyKind, NewKey};
use partner_core::ports::{MasterKeyState, MasterKeyStore, ResealedValue, SealedValue};
use partner_core::sealing::{Fingerprint, Sealed};
use secrecy::ExposeSecret as _;

use crate::contract::fixture::GateFixture;
use crate::contract::gate_world::person;
use crate::contract::payments::Payments;
use crate::contract::rails::Rails;
use crate::contract::world::{World, sealer};

/// Reads all rows of a column one by one.
async fn all(store: &dyn MasterKeyStore, column: &str) -> Vec<SealedValue> {
    let mut found: Vec<SealedValue> = Vec::new();
    loop {
        let after = found.last().map(|value| &value.row);
        let page = store.sealed_page(column, after, 1).await.unwrap();
        if page.is_empty() {
            return found;
        }
        found.extend(page);
    }
}

impl<F: GateFixture> World<F> {
    /// Creates a publishable key whose text is sealed in its row.
    pub(crate) async fn publishable_key(&self, who: &Tenant) {
        let kind = KeyKind::Publishable;
        let (key, text) = NewKey::generate(kind, who.mode, self.now(), &self.entropy);
        let sealing = key.sealing(who, text.expose_secret(), &sealer(), &self.entropy);
        let mut tx = self.provision_begin("key").await;
        tx.key_insert(who, &sealing.unwrap()).await.unwrap();
        tx.commit().await.unwrap();
    }
}

/// The values of each partner, and its rows. A customer creates a person, a response and an event. A sale creates a session, its event
/// and that of its payment, two responses and the payout account. One of three sessions has a package.
fn of_each_partner(column: &str) -> [usize; 2] {
    match column {
        "webhook_secrets.sealed" | "customers.person" | "rail_records.payout" => [1, 1],
        "events.body" | "answers.answer" => [3, 3],
        "sessions.kyc_package" => [1, 3],
        // Beside the partner's secret key.
        "api_keys.publishable_sealed" => [1, 2],
        other => panic!("{other}: create a value for each partner"),
    }
}

// rule: base.master-key-rotation
pub async fn sealed_values_are_paged_and_replaced_if_unchanged(world: World<impl GateFixture>) {
    for name in ["acme", "rival"] {
        let gate = world.open_listening_gate(name).await;
        let who = gate.member.who.clone();
        world.open_session_with(&who, None).await;
        let package = Sealed(vec![1, 2, 3]);
        world.open_session_with(&who, Some(&package)).await;
        gate.known("first", person("bob@a.example")).await;
        world.publishable_key(&who).await;
        let widget = Payments::of(Rails::of(gate), false);
        widget.sold("sale", "100.00").await;
    }
    let store = &*world.ports().master_keys;
    let mut columns = store.sealed_columns();
    columns.sort_unstable();
    assert_eq!(
        columns,
        [
            "answers.answer",
            "api_keys.publishable_sealed",
            "customers.person",
            "events.body",
            "rail_records.payout",
            "sessions.kyc_package",
            "webhook_secrets.sealed"
        ]
    );
    for column in columns {
        let before = all(store, column).await;
        let sealed: Vec<&SealedValue> = before.iter().filter(|row| row.sealed.is_some()).collect();
        let [values, rows] = of_each_partner(column).map(|count| 2 * count);
        assert_eq!((sealed.len(), before.len()), (values, rows), "{column}");
        let again = |value: &&SealedValue| ResealedValue {
            row: value.row.clone(),
            old: value.sealed.clone().unwrap(),
            new: Sealed(value.place.clone().into_bytes()),
        };
        let again: Vec<ResealedValue> = sealed.iter().map(again).collect();
        let replaced = store.sealed_replace(column, &again).await.unwrap();
        assert_eq!(replaced, values as u64, "{column}");
        for value in all(store, column).await {
            let expected = Sealed(value.place.into_bytes());
            assert!(value.sealed.is_none_or(|new| new == expected), "{column}");
        }
        let late = store.sealed_replace(column, &again).await.unwrap();
        assert_eq!(late, 0, "{column}: the value has changed since the read");
    }
}

/// With two concurrent rotations, the overtaken one does not mark the other's older key as unused.
// rule: base.master-key-rotation
pub async fn older_keys_are_retired_only_by_creator_of_current_key(world: World<impl GateFixture>) {
    let ports = world.ports();
    let [first, second, third] = ["01", "02", "03"].map(|pair| pair.repeat(8));
    let begun = ports.provision.installation_begin(Mode::Test, &first);
    begun.await.unwrap();
    let store = &*ports.master_keys;
    let [first, second, third] =
        [first, second, third].map(|text| Fingerprint::parse(&text).unwrap());
    let derived = Sealed(vec![1]);
    for (current, new, won) in [
        (second, third, Cas::Lost),
        (first, second, Cas::Won),
        (first, third, Cas::Lost),
        (second, third, Cas::Won),
        (third, second, Cas::Lost),
    ] {
        let promoted = store.master_key_promote(current, new, &derived).await;
        assert_eq!(promoted.unwrap(), won);
    }
    assert_eq!(store.master_keys_retire(second).await.unwrap(), Cas::Lost);
    let states = async || {
        let keys = store.master_keys().await.unwrap();
        keys.into_iter().map(|key| key.state).collect::<Vec<_>>()
    };
    let [current, older, retired] = [
        MasterKeyState::Current,
        MasterKeyState::Older,
        MasterKeyState::Retired,
    ];
    assert_eq!(states().await, [older, older, current]);
    assert_eq!(store.master_keys_retire(third).await.unwrap(), Cas::Won);
    assert_eq!(states().await, [retired, retired, current]);
}
