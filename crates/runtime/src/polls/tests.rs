//! Tests of the tasks over a fake store, in the time that tokio simulates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use partner_core::PartnerId;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);
/// The timeout of a lock.
const LOCK_TIMEOUT: Duration = SECOND;

/// What a call about an object does.
#[derive(Debug, Clone, Copy)]
enum Call {
    /// Ends after this long. The object is no longer due.
    Ends(Duration),
    /// Waits for a lock, without success.
    Locked,
    /// Waits for a free connection of the store, without success.
    Busy,
    /// Finds the object unreadable.
    Unreadable,
}

#[derive(Default)]
struct State {
    due: BTreeMap<(Tenant, u32), Call>,
    running: BTreeMap<Tenant, usize>,
    most_running: usize,
    /// Calls that have begun, and those that ended well.
    begun: Vec<(Tenant, u32)>,
    ended: Vec<(Tenant, u32)>,
    /// How many of the next reads fail.
    failing_reads: usize,
    /// The partners whose last calls all timed out.
    hanging: BTreeSet<Tenant>,
}

/// A store with due objects.
#[derive(Default)]
struct Fake {
    state: Mutex<State>,
    is_unavailable: AtomicBool,
}

fn tenant(name: &str) -> Tenant {
    Tenant {
        partner: PartnerId::parse(name).unwrap(),
        mode: Mode::Test,
    }
}

fn error(call: Call) -> Option<StoreError> {
    match call {
        Call::Ends(_) => None,
        Call::Locked => Some(StoreError::unavailable("the row is locked")),
        Call::Busy => Some(StoreError::busy("every connection is in use")),
        Call::Unreadable => Some(StoreError::Inconsistent {
            table: "rail_records",
            column: "kind",
            row: "acme/1".to_owned(),
        }),
    }
}

impl Fake {
    /// Makes objects of a partner due, with numbers from `first` on.
    fn put(&self, partner: &str, first: u32, calls: impl IntoIterator<Item = Call>) {
        let mut state = self.state.lock().unwrap();
        for (number, call) in (first..).zip(calls) {
            state.due.insert((tenant(partner), number), call);
        }
    }

    async fn due(self: Arc<Self>, share: DueShare) -> StoreResult<Readable<(Tenant, u32)>> {
        let mut state = self.state.lock().unwrap();
        if state.failing_reads > 0 {
            state.failing_reads -= 1;
            return Err(StoreError::unavailable("the disk is gone"));
        }
        let after = share.after.map(|partner| Tenant {
            partner,
            mode: Mode::Test,
        });
        let mut rows: Vec<(Tenant, u32)> = Vec::new();
        for (who, number) in state.due.keys() {
            let of_partner = rows.iter().filter(|(other, _)| other == who).count();
            let is_after = after.as_ref().is_none_or(|after| who > after);
            if is_after && of_partner < usize::try_from(share.of_each).unwrap() {
                rows.push((who.clone(), *number));
            }
        }
        rows.truncate(usize::try_from(share.limit).unwrap());
        Ok(Readable {
            rows,
            unreadable: Vec::new(),
        })
    }

    async fn advance(self: Arc<Self>, who: Tenant, number: u32) -> Result<(), GateError> {
        let object = (who.clone(), number);
        let call = {
            let mut state = self.state.lock().unwrap();
            state.begun.push(object.clone());
            let running = state.running.entry(who.clone()).or_default();
            *running += 1;
            let running = *running;
            state.most_running = state.most_running.max(running);
            state.due[&object]
        };
        tokio::time::sleep(match call {
            Call::Ends(takes) => takes,
            Call::Locked | Call::Busy => LOCK_TIMEOUT,
            Call::Unreadable => Duration::ZERO,
        })
        .await;
        let mut state = self.state.lock().unwrap();
        *state.running.get_mut(&who).unwrap() -= 1;
        if self.is_unavailable.load(Ordering::SeqCst) {
            return Err(StoreError::unavailable("the disk is gone").into());
        }
        if let Some(error) = error(call) {
            return Err(error.into());
        }
        state.due.remove(&object);
        state.ended.push(object);
        Ok(())
    }

    fn begun(&self, partner: &str) -> usize {
        let who = tenant(partner);
        let state = self.state.lock().unwrap();
        state
            .begun
            .iter()
            .filter(|(other, _)| *other == who)
            .count()
    }

    fn ended(&self, partner: &str) -> usize {
        let who = tenant(partner);
        let state = self.state.lock().unwrap();
        state
            .ended
            .iter()
            .filter(|(other, _)| *other == who)
            .count()
    }

    /// Runs a task beside a test, until the test has ended.
    async fn run(self: &Arc<Self>, limits: Limits, test: impl Future<Output = ()>) {
        let stop = CancellationToken::new();
        let readiness = Arc::clone(self) as Arc<dyn Readiness>;
        let task = Task::new(RAIL_FAILED, POLL_INTERVAL, limits, readiness);
        let due = |share| Arc::clone(self).due(share);
        let advance = |who, number| Arc::clone(self).advance(who, number);
        let hangs = |who: &Tenant| self.state.lock().unwrap().hanging.contains(who);
        let testing = async {
            test.await;
            stop.cancel();
        };
        tokio::join!(task.run(due, advance, hangs, &stop), testing);
        let state = self.state.lock().unwrap();
        assert!(state.running.values().all(|running| *running == 0));
    }
}

#[async_trait]
impl Readiness for Fake {
    async fn ready(&self) -> StoreResult<()> {
        if self.is_unavailable.load(Ordering::SeqCst) {
            return Err(StoreError::unavailable("the disk is gone"));
        }
        Ok(())
    }
}

/// The most calls that a task makes at a time about the objects of one partner.
fn most_of_partner(limits: Limits) -> usize {
    if limits.is_serial {
        1
    } else {
        limits.calls / 2
    }
}

#[tokio::test(start_paused = true)]
async fn ended_call_frees_place_for_next_call() {
    let fake = Arc::new(Fake::default());
    let of_partner = most_of_partner(POLL_LIMITS);
    // The slow call takes one place, and the others share the rest for 3 s.
    fake.put("acme", 0, [Call::Ends(60 * SECOND)]);
    fake.put("acme", 1, vec![Call::Ends(SECOND); 3 * (of_partner - 1)]);
    let test = async {
        tokio::time::sleep(3 * SECOND + SECOND / 2).await;
        assert_eq!(fake.ended("acme"), 3 * (of_partner - 1));
    };
    fake.run(POLL_LIMITS, test).await;
    assert_eq!(fake.state.lock().unwrap().most_running, of_partner);
    assert_eq!(fake.ended("acme"), 3 * (of_partner - 1) + 1);
}

#[tokio::test(start_paused = true)]
async fn stop_starts_no_call_and_waits_for_running_calls() {
    let fake = Arc::new(Fake::default());
    let of_partner = most_of_partner(POLL_LIMITS);
    fake.put("acme", 0, vec![Call::Ends(SECOND); 2 * of_partner]);
    fake.run(POLL_LIMITS, tokio::time::sleep(SECOND / 2)).await;
    assert_eq!(fake.ended("acme"), of_partner);
}

#[tokio::test(start_paused = true)]
async fn task_continues_after_failed_reads() {
    let fake = Arc::new(Fake::default());
    fake.state.lock().unwrap().failing_reads = 3;
    fake.put("acme", 0, [Call::Ends(SECOND)]);
    let test = tokio::time::sleep(3 * SECOND);
    fake.run(POLL_LIMITS, test).await;
    assert_eq!(fake.ended("acme"), 1);
}

/// A read that ended at its limit is continued at once. After a failed read the task waits for its interval.
#[tokio::test(start_paused = true)]
async fn failed_read_of_further_partners_is_not_repeated_at_once() {
    const FAILING: usize = 1_000;
    let fake = Arc::new(Fake::default());
    for partner in ["a", "b", "c", "d", "e"] {
        fake.put(partner, 0, vec![Call::Ends(MILLI / 10); 32]);
    }
    let test = async {
        // The first read ended at its limit, and its calls have ended.
        tokio::time::sleep(PAUSE - MILLI).await;
        assert_eq!((fake.ended("d"), fake.ended("e")), (32, 0));
        fake.state.lock().unwrap().failing_reads = FAILING;
        tokio::time::sleep(10 * SECOND).await;
        let repeated = FAILING - fake.state.lock().unwrap().failing_reads;
        assert!((40..=51).contains(&repeated), "{repeated} reads in 10 s");
        fake.state.lock().unwrap().failing_reads = 0;
        tokio::time::sleep(SECOND).await;
        assert_eq!(fake.ended("e"), 32);
    };
    fake.run(POLL_LIMITS, test).await;
}

/// The calls about a partner start at once, although those about four others take all that they can.
// rule: background.even-share
#[tokio::test(start_paused = true)]
async fn partners_whose_calls_hang_leave_calls_for_others() {
    let fake = Arc::new(Fake::default());
    let slow = ["a", "b", "c", "z"];
    for partner in slow {
        fake.put(partner, 0, vec![Call::Ends(60 * SECOND); 40]);
    }
    let test = async {
        tokio::time::sleep(SECOND).await;
        let begun = slow.map(|partner| fake.begun(partner));
        assert!(begun.iter().all(|one| (6..=7).contains(one)), "{begun:?}");
        for number in 0..20 {
            fake.put("free", number, [Call::Ends(MILLI)]);
            tokio::time::sleep(POLL_INTERVAL + 3 * PAUSE).await;
            assert_eq!(fake.ended("free"), usize::try_from(number).unwrap() + 1);
        }
    };
    fake.run(POLL_LIMITS, test).await;
}

// rule: background.even-share, upstream.http.hanging
#[tokio::test(start_paused = true)]
async fn hanging_partner_has_two_calls_at_a_time_until_a_response() {
    let fake = Arc::new(Fake::default());
    fake.put("acme", 0, vec![Call::Ends(SECOND); 10]);
    fake.state.lock().unwrap().hanging.insert(tenant("acme"));
    let test = async {
        tokio::time::sleep(SECOND / 2).await;
        assert_eq!(fake.begun("acme"), 2);
        tokio::time::sleep(SECOND).await;
        assert_eq!(fake.begun("acme"), 4);
        fake.state.lock().unwrap().hanging.clear();
        tokio::time::sleep(SECOND).await;
        assert_eq!(fake.begun("acme"), 10);
    };
    fake.run(POLL_LIMITS, test).await;
}

/// Each object of the free partner ends as it would without the locked partners, which are tried again less and less often.
// rule: background.isolated
#[tokio::test(start_paused = true)]
async fn locked_partners_delay_no_other_partner() {
    for limits in [POLL_LIMITS, SWEEP_LIMITS] {
        let fake = Arc::new(Fake::default());
        for locked in ["a-locked", "z-locked"] {
            fake.put(locked, 0, vec![Call::Locked; 500]);
        }
        let test = async {
            // The first calls about the locked partners have ended.
            tokio::time::sleep(2 * LOCK_TIMEOUT).await;
            for number in 0..100 {
                fake.put("free", number, [Call::Ends(MILLI)]);
                tokio::time::sleep(POLL_INTERVAL + 10 * MILLI).await;
                assert_eq!(fake.ended("free"), usize::try_from(number).unwrap() + 1);
            }
        };
        fake.run(limits, test).await;
        for locked in ["a-locked", "z-locked"] {
            // It is tried again after 1, 2, 4, 8 and 10 s, besides the time of each call.
            let calls = fake.begun(locked);
            let most = most_of_partner(limits) + 5;
            assert!((4..=most).contains(&calls), "{calls}");
        }
    }
}

// rule: background.isolated
#[tokio::test(start_paused = true)]
async fn partner_is_served_again_after_its_lock_has_ended() {
    let fake = Arc::new(Fake::default());
    fake.put("acme", 0, vec![Call::Locked; 40]);
    let test = async {
        tokio::time::sleep(30 * SECOND).await;
        assert_eq!(fake.ended("acme"), 0);
        fake.put("acme", 0, vec![Call::Ends(MILLI); 40]);
        // The longest backoff, and a call that began before.
        tokio::time::sleep(12 * SECOND).await;
        assert_eq!(fake.ended("acme"), 40);
    };
    fake.run(POLL_LIMITS, test).await;
}

/// The row of one object is locked, and the partner's other objects are tried after it.
// rule: background.isolated
#[tokio::test(start_paused = true)]
async fn locked_object_delays_other_objects_of_its_partner_for_a_while_only() {
    for limits in [POLL_LIMITS, SWEEP_LIMITS] {
        let fake = Arc::new(Fake::default());
        fake.put("acme", 0, [Call::Locked]);
        fake.put("acme", 1, vec![Call::Ends(MILLI); 60]);
        fake.run(limits, tokio::time::sleep(60 * SECOND)).await;
        assert_eq!(fake.ended("acme"), 60);
    }
}

/// There are more unreadable objects than a read returns of a partner.
// rule: background.unreadable
#[tokio::test(start_paused = true)]
async fn unreadable_objects_are_left_out_and_others_continue() {
    for limits in [POLL_LIMITS, SWEEP_LIMITS] {
        let fake = Arc::new(Fake::default());
        let unreadable = 3 * usize::try_from(limits.read_of_partner).unwrap();
        fake.put("acme", 0, vec![Call::Unreadable; unreadable]);
        fake.put("acme", 1_000, vec![Call::Ends(MILLI); 60]);
        fake.put("globex", 0, vec![Call::Ends(MILLI); 60]);
        let test = async {
            tokio::time::sleep(2 * SECOND).await;
            assert_eq!([fake.ended("acme"), fake.ended("globex")], [60, 60]);
            tokio::time::sleep(58 * SECOND).await;
        };
        fake.run(limits, test).await;
        // Each is tried at once, and then after 1, 2, 4, 8, 16 and 32 s.
        let tries = (fake.begun("acme") - 60) / unreadable;
        assert!((5..=7).contains(&tries), "{tries}");
    }
}

/// While the store is unavailable no partner is left out, so that all continue as soon as it is available.
#[tokio::test(start_paused = true)]
async fn unavailable_store_leaves_no_partner_out() {
    let fake = Arc::new(Fake::default());
    for partner in ["acme", "globex"] {
        fake.put(partner, 0, vec![Call::Ends(MILLI); 20]);
    }
    fake.is_unavailable.store(true, Ordering::SeqCst);
    let test = async {
        tokio::time::sleep(30 * SECOND).await;
        fake.is_unavailable.store(false, Ordering::SeqCst);
        tokio::time::sleep(SECOND).await;
        assert_eq!([fake.ended("acme"), fake.ended("globex")], [20, 20]);
    };
    fake.run(POLL_LIMITS, test).await;
}

/// The store is ready, but has no free connection. No partner is taken for locked, so that all continue as soon as a connection is
/// free.
#[tokio::test(start_paused = true)]
async fn store_without_free_connection_leaves_no_partner_out() {
    let fake = Arc::new(Fake::default());
    for partner in ["acme", "globex"] {
        fake.put(partner, 0, vec![Call::Busy; 20]);
    }
    let test = async {
        // A locked partner would be left out from 20 s to 30 s.
        tokio::time::sleep(25 * SECOND).await;
        for partner in ["acme", "globex"] {
            assert_eq!(fake.ended(partner), 0);
            fake.put(partner, 0, vec![Call::Ends(MILLI); 20]);
        }
        tokio::time::sleep(2 * SECOND).await;
        assert_eq!([fake.ended("acme"), fake.ended("globex")], [20, 20]);
    };
    fake.run(POLL_LIMITS, test).await;
}

/// A read that ends at its limit is continued after its last partner, and then from the first partner.
#[test]
fn read_continues_after_last_partner_of_previous_read() {
    let limits = Limits {
        calls: 9,
        is_serial: false,
        read: 3,
        read_of_partner: 2,
    };
    let now = Instant::now();
    let mut schedule = Schedule::new(limits);
    let rows = |names: &[(&str, u32)]| {
        let rows = names.iter().map(|(name, number)| (tenant(name), *number));
        rows.collect::<Vec<_>>()
    };
    let share = schedule.share();
    assert_eq!(share.after, None);
    schedule.absorb(&share, rows(&[("a", 1), ("a", 2), ("b", 1)]), 0, now);
    let share = schedule.share();
    assert_eq!(share.after, Some(tenant("b").partner));
    schedule.absorb(&share, rows(&[("c", 1)]), 0, now);
    assert_eq!(schedule.share().after, None);
    // One object of each partner after another.
    let mut started = Vec::new();
    while let Some((who, number)) = schedule.start_next(now, |_| false) {
        started.push((who, number));
    }
    let expected = rows(&[("a", 1), ("b", 1), ("c", 1), ("a", 2)]);
    assert_eq!(started, expected);
}

// rule: background.unreadable
#[test]
fn unreadable_row_is_logged_once_a_minute() {
    let mut logged = LoggedErrors::default();
    let (now, unreadable) = (Instant::now(), error(Call::Unreadable).unwrap());
    assert!(logged.log(&unreadable, now));
    assert!(!logged.log(&unreadable, now + LOG_INTERVAL - MILLI));
    assert!(logged.log(&StoreError::Retry, now), "another row");
    assert!(logged.log(&unreadable, now + LOG_INTERVAL));
}
