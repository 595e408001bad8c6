//! The permits for the calls to an upstream, or for its polls, and the partners that hold them.
//!
//! [`PermitLoad`] divides the permits. A call that gets none waits. A permit that becomes free goes to the waiting partner that holds the
//! fewest, and among equals to the one whose last permit is the oldest. Of a partner's calls the newest one comes first, because it has the
//! most time left for its response: a hanging partner's few calls then show whether the upstream responds to it again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use partner_core::PartnerId;
use partner_core::permits::PermitLoad;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A partner hangs after this many timed-out calls without a response between them.
const HANGS_AFTER: u32 = 8;
/// Above this number of partners, those without a call are removed from memory, also if they hang.
const MAX_PARTNERS: usize = 1024;

/// The permits of all partners.
#[derive(Debug, Clone)]
pub(super) struct Permits(Arc<Mutex<State>>);

impl Permits {
    pub(super) fn new(total: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            load: PermitLoad {
                total,
                held: 0,
                held_by_hanging: 0,
            },
            partners: HashMap::new(),
            last: 0,
        })))
    }

    /// A permit for a call of this partner. Waits for it. A caller that stops waiting leaves no permit behind.
    pub(super) async fn acquire(&self, partner: &PartnerId) -> Permit {
        let (permit, granted) = self.line_up(partner);
        if let Some(granted) = granted {
            // The sender is kept until the permit is granted or dropped.
            let _ = granted.await;
        }
        permit
    }

    /// A permit, and what the call waits for unless it got the permit.
    fn line_up(&self, partner: &PartnerId) -> (Permit, Option<oneshot::Receiver<()>>) {
        let mut state = self.0.lock();
        let call = state.next_call();
        let is_granted = state.take(partner, call);
        let granted = (!is_granted).then(|| state.wait(partner, call));
        (self.permit(partner, call), granted)
    }

    /// A permit for a call of this partner, if the partner gets one now.
    pub(super) fn try_acquire(&self, partner: &PartnerId) -> Option<Permit> {
        let mut state = self.0.lock();
        let call = state.next_call();
        let is_granted = state.take(partner, call);
        is_granted.then(|| self.permit(partner, call))
    }

    fn permit(&self, partner: &PartnerId, call: u64) -> Permit {
        Permit {
            permits: self.clone(),
            partner: partner.clone(),
            call,
        }
    }

    /// Whether the last calls of this partner all timed out.
    pub(super) fn is_hanging(&self, partner: &PartnerId) -> bool {
        let state = self.0.lock();
        let calls = state.partners.get(partner);
        calls.is_some_and(Calls::is_hanging)
    }

    /// Records that a call of this partner got a response, or that it timed out.
    fn record(&self, partner: &PartnerId, is_answered: bool) {
        let is_turn = self.0.lock().record(partner, is_answered);
        if !is_turn {
            return;
        }
        if is_answered {
            tracing::info!(partner.id = %partner, "A partner's call got a response again; its calls are no longer limited to two at once");
        } else {
            tracing::warn!(partner.id = %partner, "A partner's last calls all timed out; at most two are made at once until one gets a response");
        }
    }
}

/// A permit until it is dropped, or the place of a call that waits for one.
#[derive(Debug)]
pub(crate) struct Permit {
    permits: Permits,
    partner: PartnerId,
    call: u64,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.permits.0.lock().end(&self.partner, self.call);
    }
}

/// A call in flight. Unless it gets a response, it counts as timed out if it has lasted for at least half of its time: also if its
/// caller gave up earlier. A call that ends before that without a response, such as one without a connection, does not count.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    permits: &'a Permits,
    partner: &'a PartnerId,
    began: Instant,
    within: Duration,
    is_answered: bool,
}

impl<'a> Attempt<'a> {
    pub(super) fn begin(permits: &'a Permits, partner: &'a PartnerId, within: Duration) -> Self {
        Self {
            permits,
            partner,
            began: Instant::now(),
            within,
            is_answered: false,
        }
    }

    /// Ends the call with a response, valid or not.
    pub(super) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let is_late = self.began.elapsed() >= self.within / 2;
        if self.is_answered || is_late {
            self.permits.record(self.partner, self.is_answered);
        }
    }
}

#[derive(Debug)]
struct State {
    load: PermitLoad,
    /// The partners with calls, and those whose last call timed out.
    partners: HashMap<PartnerId, Calls>,
    /// The number of the last call.
    last: u64,
}

impl State {
    fn next_call(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Gives a permit to a call of this partner, unless the partner must wait.
    fn take(&mut self, partner: &PartnerId, call: u64) -> bool {
        let calls = self.partners.get(partner);
        let (held, is_hanging) = calls.map_or((0, false), |it| (it.held, it.is_hanging()));
        let is_admitted = self.load.admits(held, is_hanging);
        if is_admitted {
            calls_of(&mut self.partners, partner).take(&mut self.load, call);
        }
        is_admitted
    }

    fn wait(&mut self, partner: &PartnerId, call: u64) -> oneshot::Receiver<()> {
        calls_of(&mut self.partners, partner).wait(call)
    }

    /// Removes a call that holds a permit or waits for one.
    fn end(&mut self, partner: &PartnerId, call: u64) {
        let Some(calls) = self.partners.get_mut(partner) else {
            return;
        };
        if calls.waiting.remove(&call).is_none() {
            calls.release(&mut self.load);
        }
        self.settle(partner);
    }

    /// Returns whether the partner starts or stops hanging.
    fn record(&mut self, partner: &PartnerId, is_answered: bool) -> bool {
        let calls = self.partners.get(partner);
        if is_answered && calls.is_none_or(|calls| calls.timed_out == 0) {
            return false;
        }
        let calls = calls_of(&mut self.partners, partner);
        let is_turn = calls.record(&mut self.load, is_answered);
        self.settle(partner);
        is_turn
    }

    /// Gives the free permits to waiting partners, and forgets the partner of the last change if nothing is left to remember.
    fn settle(&mut self, changed: &PartnerId) {
        loop {
            let load = self.load;
            let waiting = self.partners.values_mut().filter(|calls| {
                !calls.waiting.is_empty() && load.admits(calls.held, calls.is_hanging())
            });
            let Some(next) = waiting.min_by_key(|calls| (calls.held, calls.since)) else {
                break;
            };
            self.last += 1;
            next.grant(&mut self.load, self.last);
        }
        let calls = self.partners.get(changed);
        if calls.is_some_and(|calls| calls.is_idle() && calls.timed_out == 0) {
            self.partners.remove(changed);
        }
    }
}

fn calls_of<'a>(partners: &'a mut HashMap<PartnerId, Calls>, partner: &PartnerId) -> &'a mut Calls {
    if partners.len() >= MAX_PARTNERS && !partners.contains_key(partner) {
        partners.retain(|_, calls| !calls.is_idle());
    }
    partners.entry(partner.clone()).or_default()
}

/// The calls of a partner.
#[derive(Debug, Default)]
struct Calls {
    /// Permits that the partner holds.
    held: usize,
    /// The calls that wait for a permit, by number.
    waiting: BTreeMap<u64, oneshot::Sender<()>>,
    /// The number that was the last one when the partner got its last permit, or began to wait without any.
    since: u64,
    /// Timed-out calls since the last response.
    timed_out: u32,
}

impl Calls {
    const fn is_hanging(&self) -> bool {
        self.timed_out >= HANGS_AFTER
    }

    fn is_idle(&self) -> bool {
        self.held == 0 && self.waiting.is_empty()
    }

    fn take(&mut self, load: &mut PermitLoad, number: u64) {
        self.held += 1;
        self.since = number;
        load.held += 1;
        if self.is_hanging() {
            load.held_by_hanging += 1;
        }
    }

    fn release(&mut self, load: &mut PermitLoad) {
        self.held = self.held.saturating_sub(1);
        load.held = load.held.saturating_sub(1);
        if self.is_hanging() {
            load.held_by_hanging = load.held_by_hanging.saturating_sub(1);
        }
    }

    fn wait(&mut self, call: u64) -> oneshot::Receiver<()> {
        if self.is_idle() {
            self.since = call;
        }
        let (granting, granted) = oneshot::channel();
        self.waiting.insert(call, granting);
        granted
    }

    /// Gives a permit to the newest call that waits.
    fn grant(&mut self, load: &mut PermitLoad, number: u64) {
        if let Some((_, granting)) = self.waiting.pop_last() {
            self.take(load, number);
            // A caller that has just stopped waiting drops its permit, which frees it again.
            let _ = granting.send(());
        }
    }

    /// Returns whether the partner starts or stops hanging.
    fn record(&mut self, load: &mut PermitLoad, is_answered: bool) -> bool {
        let was_hanging = self.is_hanging();
        self.timed_out = if is_answered {
            0
        } else {
            self.timed_out.saturating_add(1)
        };
        load.held_by_hanging = match (was_hanging, self.is_hanging()) {
            (false, true) => load.held_by_hanging.saturating_add(self.held),
            (true, false) => load.held_by_hanging.saturating_sub(self.held),
            _ => return false,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    const MILLI: Duration = Duration::from_millis(1);
    const SECOND: Duration = Duration::from_secs(1);

    fn partner(number: usize) -> PartnerId {
        PartnerId::parse(&format!("p{number}")).unwrap()
    }

    /// Takes all permits that the partner gets.
    fn all_of(permits: &Permits, number: usize) -> Vec<Permit> {
        std::iter::from_fn(|| permits.try_acquire(&partner(number))).collect()
    }

    /// A call of a partner that waits for a permit.
    fn waiting(permits: &Permits, number: usize) -> tokio::task::JoinHandle<Permit> {
        let permits = permits.clone();
        tokio::spawn(async move { permits.acquire(&partner(number)).await })
    }

    /// Lets the tasks run until all of them wait.
    async fn idle() {
        tokio::time::sleep(MILLI).await;
    }

    fn free(permits: &Permits) -> usize {
        let load = permits.0.lock().load;
        load.total - load.held
    }

    fn time_out(permits: &Permits, number: usize, times: u32) {
        for _ in 0..times {
            permits.record(&partner(number), false);
        }
    }

    // rule: pools.engine.even-share, rail.http.even-share, verifier.http.even-share
    #[tokio::test(start_paused = true)]
    async fn free_permit_goes_to_the_waiting_partner_that_holds_the_fewest() {
        let permits = Permits::new(4);
        let (mut first, second) = (all_of(&permits, 1), all_of(&permits, 2));
        let third = all_of(&permits, 3);
        assert_eq!([first.len(), second.len(), third.len()], [2, 1, 1]);
        let rich = waiting(&permits, 1);
        idle().await;
        let poor = waiting(&permits, 4);
        idle().await;
        first.pop();
        let granted = poor.await.unwrap();
        // The next free permit stays free for another partner.
        drop(third);
        idle().await;
        assert!(!rich.is_finished());
        assert_eq!(free(&permits), 1);
        drop(granted);
        rich.await.unwrap();
        assert_eq!(free(&permits), 2);
        drop((first, second));
        assert!(permits.0.lock().partners.is_empty());
    }

    // rule: pools.engine.even-share, rail.http.even-share, verifier.http.even-share
    #[tokio::test(start_paused = true)]
    async fn partners_that_wait_with_equal_parts_take_turns() {
        let permits = Permits::new(1);
        let mut held = all_of(&permits, 0);
        let mut calls = Vec::new();
        for number in [1, 1, 1, 2, 2] {
            calls.push((number, waiting(&permits, number)));
            idle().await;
        }
        let mut turns = Vec::new();
        while !calls.is_empty() {
            held.pop();
            idle().await;
            let found = calls.iter().position(|(_, call)| call.is_finished());
            let (number, call) = calls.remove(found.unwrap());
            turns.push(number);
            held.push(call.await.unwrap());
        }
        assert_eq!(turns, [1, 2, 1, 2, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn newest_call_of_a_partner_comes_first() {
        let permits = Permits::new(1);
        let held = permits.try_acquire(&partner(0));
        let old = waiting(&permits, 1);
        idle().await;
        let new = waiting(&permits, 1);
        idle().await;
        drop(held);
        let first = new.await.unwrap();
        assert!(!old.is_finished());
        drop(first);
        old.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn caller_that_gives_up_leaves_no_permit_and_no_place() {
        let permits = Permits::new(2);
        let held = permits.try_acquire(&partner(0));
        let other = permits.try_acquire(&partner(1));
        // One caller gives up while it waits, the other one after it got the permit.
        let one = partner(2);
        let early = timeout(SECOND, permits.acquire(&one)).await;
        assert!(early.is_err());
        let mut late = Box::pin(permits.acquire(&one));
        assert!(timeout(SECOND, &mut late).await.is_err());
        drop(held);
        assert_eq!(free(&permits), 0);
        drop(late);
        assert_eq!(free(&permits), 1);
        drop(other);
        assert_eq!(free(&permits), 2);
        assert!(permits.0.lock().partners.is_empty());
    }

    // rule: upstream.http.hanging
    #[tokio::test(start_paused = true)]
    async fn hanging_partner_holds_two_permits_until_a_response() {
        let permits = Permits::new(16);
        let one = partner(1);
        time_out(&permits, 1, HANGS_AFTER - 1);
        assert_eq!(all_of(&permits, 1).len(), 8);
        let mut held = all_of(&permits, 1);
        time_out(&permits, 1, 1);
        assert!(permits.is_hanging(&one));
        let call = waiting(&permits, 1);
        idle().await;
        held.truncate(2);
        idle().await;
        assert!(!call.is_finished());
        held.truncate(1);
        let second = call.await.unwrap();
        let (third, fourth) = (waiting(&permits, 1), waiting(&permits, 1));
        idle().await;
        assert!(!third.is_finished());
        permits.record(&one, true);
        assert!(!permits.is_hanging(&one));
        let all = (third.await.unwrap(), fourth.await.unwrap());
        drop((held, second, all));
        assert_eq!(permits.0.lock().load, Permits::new(16).0.lock().load);
    }

    // rule: upstream.http.hanging
    #[tokio::test(start_paused = true)]
    async fn call_without_response_times_out_after_half_of_its_time() {
        let one = partner(1);
        for (lasts, is_hanging) in [(SECOND / 2 - MILLI, false), (SECOND / 2, true)] {
            let permits = Permits::new(4);
            for _ in 0..HANGS_AFTER {
                let attempt = Attempt::begin(&permits, &one, SECOND);
                advance(lasts).await;
                drop(attempt);
            }
            assert_eq!(permits.is_hanging(&one), is_hanging, "{lasts:?}");
        }
        let permits = Permits::new(4);
        for number in 0..2 * HANGS_AFTER {
            let attempt = Attempt::begin(&permits, &one, SECOND);
            advance(SECOND).await;
            if number % HANGS_AFTER == 0 {
                attempt.answered();
            }
        }
        assert!(!permits.is_hanging(&one));
    }

    #[test]
    fn partners_without_a_call_are_forgotten() {
        let permits = Permits::new(4);
        let held = permits.try_acquire(&partner(0));
        for number in 1..=MAX_PARTNERS + 1 {
            time_out(&permits, number, HANGS_AFTER);
        }
        assert!(permits.0.lock().partners.len() < MAX_PARTNERS);
        assert!(permits.0.lock().partners.contains_key(&partner(0)));
        drop(held);
        assert_eq!(free(&permits), 4);
    }
}
