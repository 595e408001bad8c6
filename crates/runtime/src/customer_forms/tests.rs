//! Tests of the walk over a fake store, in the time that tokio simulates.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use async_trait::async_trait;
use gate_core::ports::{CustomerForms, CustomerFormsTx, FormsPage};
use kernel::{Entropy, Readable, Timestamp};
use partner_core::PartnerId;
use partner_core::sealing::{MasterKey, Sealer};
use tokio::task::JoinHandle;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// A store in which other transactions may have locked the rows of the partner `locked`. The partner `a` may have earlier customers,
/// two in each page. No transaction can change them.
#[derive(Default)]
struct Fake {
    walks: AtomicU32,
    is_locked: AtomicBool,
    /// The partners whose customers were read, in order.
    visited: Mutex<Vec<String>>,
    earlier: Vec<CustomerId>,
    /// The customers of `a` after which pages were read.
    places: Mutex<Vec<Option<CustomerId>>>,
    transactions: AtomicU32,
}

impl Fake {
    fn walks(&self) -> u32 {
        self.walks.load(Ordering::SeqCst)
    }

    fn visits(&self, partner: &str) -> usize {
        let visited = self.visited.lock().unwrap();
        visited.iter().filter(|one| *one == partner).count()
    }
}

#[async_trait]
impl Readiness for Fake {
    async fn ready(&self) -> StoreResult<()> {
        Ok(())
    }
}

#[async_trait]
impl CustomerForms for Fake {
    async fn partners_after(
        &self,
        _: Mode,
        _: Option<&PartnerId>,
        _: u32,
    ) -> StoreResult<FormsPage<PartnerId>> {
        self.walks.fetch_add(1, Ordering::SeqCst);
        let partners = ["a", "locked", "z"].map(|name| PartnerId::parse(name).unwrap());
        Ok(FormsPage {
            found: partners.into_iter().map(Ok).collect(),
            next: None,
        })
    }

    async fn customers_without_forms(
        &self,
        who: &Tenant,
        after: Option<CustomerId>,
        _: u32,
    ) -> StoreResult<FormsPage<CustomerId>> {
        let partner = who.partner.as_str();
        self.visited.lock().unwrap().push(partner.to_owned());
        if partner == "locked" && self.is_locked.load(Ordering::SeqCst) {
            return Err(StoreError::unavailable("the row is locked"));
        }
        let mut rows = Vec::new();
        if partner == "a" {
            self.places.lock().unwrap().push(after);
            let rest = self.earlier.iter().filter(|id| Some(**id) > after);
            rows.extend(rest.take(2).copied());
        }
        let last = rows.last().copied();
        let found: Readable<CustomerId> = rows.into_iter().map(Ok).collect();
        Ok(FormsPage {
            next: last.filter(|last| Some(last) != self.earlier.last()),
            found,
        })
    }

    /// The first transaction meets a full store; all others fail for good.
    async fn forms_begin(&self, _: &'static str) -> StoreResult<Box<dyn CustomerFormsTx>> {
        match self.transactions.fetch_add(1, Ordering::SeqCst) {
            0 => Err(StoreError::Overloaded),
            _ => Err(StoreError::unexpected("the row cannot be changed")),
        }
    }
}

fn walking(store: &Arc<Fake>) -> (CancellationToken, JoinHandle<()>) {
    let stop = CancellationToken::new();
    let comparing = CompareCustomers {
        store: store.clone(),
        sealer: Arc::new(Sealer::new(&MasterKey::new([1; 32]))),
    };
    let walking = compare_customers(comparing, Mode::Test, store.clone(), stop.clone());
    (stop, tokio::spawn(walking))
}

#[tokio::test(start_paused = true)]
async fn walk_runs_once_more_after_an_hour_and_then_never() {
    let store = Arc::new(Fake::default());
    let (_stop, task) = walking(&store);
    tokio::time::sleep(HOUR / 2).await;
    assert_eq!(store.walks(), 1);
    tokio::time::sleep(HOUR).await;
    assert_eq!(store.walks(), 2);
    assert!(task.is_finished());
    for partner in ["a", "locked", "z"] {
        assert_eq!(store.visits(partner), 2);
    }
}

// rule: background.isolated
#[tokio::test(start_paused = true)]
async fn locked_partner_delays_no_other_and_is_visited_again() {
    let store = Arc::new(Fake::default());
    store.is_locked.store(true, Ordering::SeqCst);
    let (stop, task) = walking(&store);
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!((store.visits("a"), store.visits("z")), (1, 1));
    // The pauses are 1 s, 2 s, 4 s.
    assert_eq!(store.visits("locked"), 4);
    store.is_locked.store(false, Ordering::SeqCst);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(store.visits("locked"), 5);
    assert_eq!(store.walks(), 1);
    stop.cancel();
    task.await.unwrap();
}

// rule: background.isolated
#[tokio::test(start_paused = true)]
async fn locked_partner_delays_no_further_page_of_another() {
    let store = Arc::new(Fake {
        earlier: earlier(5),
        // The transaction that meets a full store is over.
        transactions: AtomicU32::new(1),
        ..Fake::default()
    });
    store.is_locked.store(true, Ordering::SeqCst);
    let (stop, task) = walking(&store);
    tokio::time::sleep(SECOND / 2).await;
    // Three pages of two, two and one customers.
    assert_eq!(store.visits("a"), 3);
    assert_eq!((store.visits("locked"), store.visits("z")), (1, 1));
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stop_ends_the_walk_while_a_partner_is_locked() {
    let store = Arc::new(Fake::default());
    store.is_locked.store(true, Ordering::SeqCst);
    let (stop, task) = walking(&store);
    tokio::time::sleep(SECOND / 2).await;
    stop.cancel();
    task.await.unwrap();
    assert_eq!((store.walks(), store.visits("locked")), (1, 1));
}

struct Zeros;

impl Entropy for Zeros {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

/// Customers in the order of their ids.
fn earlier(count: i64) -> Vec<CustomerId> {
    let id = |millis| {
        let at = Timestamp::from_millis(millis).unwrap();
        CustomerId::new(Mode::Test, at, &Zeros)
    };
    (1..=count).map(id).collect()
}

/// No customer of a page is left out, and none is visited again, if a page is read again or a customer cannot be changed.
#[tokio::test(start_paused = true)]
async fn walk_continues_page_by_page_after_failures() {
    let earlier = earlier(5);
    let store = Arc::new(Fake {
        earlier: earlier.clone(),
        ..Fake::default()
    });
    let (stop, task) = walking(&store);
    tokio::time::sleep(MINUTE).await;
    let places = [None, None, Some(earlier[1]), Some(earlier[3])];
    assert_eq!(*store.places.lock().unwrap(), places);
    // The one that met a full store; two of two customers and one of one, each repeated for each of its customers.
    let transactions = 1 + 3 + 3 + 2;
    assert_eq!(store.transactions.load(Ordering::SeqCst), transactions);
    assert_eq!((store.visits("locked"), store.visits("z")), (1, 1));
    stop.cancel();
    task.await.unwrap();
}

/// A partner that stays locked ends the first walk when the second is due.
#[tokio::test(start_paused = true)]
async fn partner_that_stays_locked_prevents_no_second_walk() {
    let store = Arc::new(Fake::default());
    store.is_locked.store(true, Ordering::SeqCst);
    let (stop, task) = walking(&store);
    tokio::time::sleep(HOUR + 2 * MINUTE).await;
    assert_eq!(store.walks(), 2);
    assert_eq!((store.visits("a"), store.visits("z")), (2, 2));
    stop.cancel();
    task.await.unwrap();
}
