//! Values that several tests share.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use gate_core::amount::SessionAmount;
use gate_core::object::JsonObject;
use gate_core::secret::SecretHash;
use gate_core::session::{Session, SessionId, SessionState, Terms};
use gate_core::transaction::RefId;
use kernel::{Asset, Timestamp};

pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The start of every test: noon of May 28.
pub(crate) fn noon() -> Timestamp {
    Timestamp::from_millis(1_780_000_000_000).unwrap()
}

pub(crate) fn after(millis: u64) -> Timestamp {
    noon().plus(Duration::from_millis(millis))
}

/// Expects that `docs/state-machines.md` has this table under this name.
pub(crate) fn assert_documented(name: &str, table: &str) {
    let page = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/state-machines.md"
    ));
    let marker = format!("<!-- table: {name} -->\n");
    let (_, rest) = page.split_once(&marker).unwrap();
    let documented = rest.split_once("<!-- end -->").unwrap().0.trim();
    assert!(
        documented == table,
        "docs/state-machines.md, table {name}, is stale; it should read\n\n{table}\n"
    );
}

/// Runs a future that is ready at its first poll.
pub(crate) fn ready<F: Future>(future: F) -> F::Output {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future is not ready at its first poll"),
    }
}

pub(crate) fn session_at(state: SessionState) -> Session {
    let id = SessionId::parse("gs_test_01HF7YAT00408104G208104081").unwrap();
    Session {
        id,
        terms: Terms {
            amount: SessionAmount::parse("100.00").unwrap(),
            currency: Asset::fiat("EUR").unwrap(),
            return_url: "https://shop.example/done".to_owned(),
            cancel_url: None,
            target_token: None,
            target_network: None,
            flow: None,
            wallet_address: None,
            user_reference: None,
            metadata: JsonObject::empty(),
        },
        secret: SecretHash([7; 32]),
        kyc_pre_verified: false,
        created_at: noon(),
        expires_at: noon().plus(DAY),
        state,
        payment_in_progress: false,
        tokens_made: 0,
    }
}

pub(crate) fn refid() -> RefId {
    RefId::parse("test_tx_01HF7YAT00408104G208104081").unwrap()
}
