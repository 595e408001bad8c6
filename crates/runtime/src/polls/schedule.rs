//! Which of the due objects a task starts next: of the partner with the fewest running calls, and without those that have just failed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use gate_core::due::DueShare;
use partner_core::permits::PermitLoad;
use partner_core::{PartnerId, Tenant};
use tokio::time::Instant;

/// The first backoff after a failure. Each further one is twice as long.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// The longest backoff of a locked partner.
const LONGEST_OF_PARTNER: Duration = Duration::from_secs(10);
/// The longest backoff of an object that cannot be read or changed.
const LONGEST_OF_OBJECT: Duration = Duration::from_secs(60);
/// Maximum number of failed objects of a partner that are remembered.
const MAX_FAILED: usize = 1_000;

/// The limits of a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Maximum number of concurrent calls.
    pub(super) calls: usize,
    /// Whether the calls about objects of one partner run one after another.
    pub(super) is_serial: bool,
    /// Maximum number of objects that one read returns.
    pub(super) read: u32,
    /// Maximum number of objects of one partner that one read returns.
    pub(super) read_of_partner: u32,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing failed.
    Done,
    /// Other callers won every race. The next read may return the object again.
    LostRaces,
    /// The object cannot be read or changed.
    ObjectFailed,
    /// Another transaction has locked rows of the partner.
    PartnerLocked,
    /// The store is unavailable for every partner.
    StoreUnavailable,
}

/// The time after a failure in which its cause is left out.
#[derive(Debug, Clone, Copy)]
struct Backoff {
    span: Duration,
    until: Instant,
}

impl Backoff {
    /// The backoff after a failure. A failure of a call that was started before the backoff changes nothing.
    fn after(before: Option<Self>, longest: Duration, now: Instant) -> Self {
        let span = match before {
            Some(before) if before.is_running(now) => return before,
            Some(before) => before.span.saturating_mul(2).min(longest),
            None => FIRST_BACKOFF,
        };
        Self {
            span,
            until: now + span,
        }
    }

    fn is_running(&self, now: Instant) -> bool {
        now < self.until
    }

    /// Whether nothing has failed since its end for as long as it lasted. It is then forgotten.
    fn is_over(&self, now: Instant) -> bool {
        now >= self.until + self.span
    }
}

/// The due objects of a partner.
#[derive(Debug)]
struct Objects<I> {
    /// Those that the last read returned and that have not been started, in order.
    waiting: VecDeque<I>,
    running: BTreeSet<I>,
    /// Whether more objects are due than the last read returned.
    has_more: bool,
    locked: Option<Backoff>,
    /// The object whose call found the partner locked.
    found_locked: Option<I>,
    failed: BTreeMap<I, Backoff>,
}

impl<I: Copy + Ord> Objects<I> {
    const fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            running: BTreeSet::new(),
            has_more: false,
            locked: None,
            found_locked: None,
            failed: BTreeMap::new(),
        }
    }

    /// Replaces the waiting objects by those of a read, without the running and the failed ones. The object that found the
    /// partner locked becomes the last one, because its own row may be what is locked.
    fn absorb(&mut self, read: Vec<I>, of_each: u32, now: Instant) {
        let is_full = read.len() >= size(of_each);
        let is_left_out = |id: &I| {
            let failed = self.failed.get(id);
            self.running.contains(id) || failed.is_some_and(|backoff| backoff.is_running(now))
        };
        let mut waiting: VecDeque<I> = read.into_iter().filter(|id| !is_left_out(id)).collect();
        let found = |last: I| waiting.iter().position(|id| *id == last);
        if let Some(place) = self.found_locked.and_then(found) {
            waiting.rotate_left(place + 1);
        }
        self.has_more = is_full && !waiting.is_empty();
        self.waiting = waiting;
    }

    /// Whether a call may start if the partner gets a permit for it.
    fn may_start(&self, is_serial: bool, now: Instant) -> bool {
        let is_single = match self.locked {
            Some(backoff) if backoff.is_running(now) => return false,
            // One call finds out whether the partner is still locked.
            Some(_) => true,
            None => is_serial,
        };
        let has_room = !is_single || self.running.is_empty();
        !self.waiting.is_empty() && has_room
    }

    /// Whether a read would return further objects that may start.
    fn wants_read(&self) -> bool {
        self.has_more && self.waiting.is_empty() && self.locked.is_none()
    }

    /// Returns whether a backoff begins, or the error is not covered by a backoff.
    fn ended(&mut self, id: I, outcome: Outcome, now: Instant) -> bool {
        self.running.remove(&id);
        let before = match outcome {
            Outcome::Done => {
                (self.locked, self.found_locked) = (None, None);
                self.failed.remove(&id);
                return false;
            }
            Outcome::LostRaces | Outcome::StoreUnavailable => return true,
            Outcome::ObjectFailed => {
                let before = self.failed.get(&id).copied();
                self.forget_first_failed();
                let backoff = Backoff::after(before, LONGEST_OF_OBJECT, now);
                self.failed.insert(id, backoff);
                before
            }
            Outcome::PartnerLocked => {
                let before = self.locked;
                self.locked = Some(Backoff::after(before, LONGEST_OF_PARTNER, now));
                self.found_locked = Some(id);
                before
            }
        };
        before.is_none_or(|before| !before.is_running(now))
    }

    /// Makes room for a failed object.
    fn forget_first_failed(&mut self) {
        if self.failed.len() < MAX_FAILED {
            return;
        }
        let first = self.failed.iter().min_by_key(|(_, backoff)| backoff.until);
        if let Some(first) = first.map(|(id, _)| *id) {
            self.failed.remove(&first);
        }
    }

    /// Forgets the backoffs that are over. Returns whether anything is left to remember.
    fn remembers(&mut self, now: Instant) -> bool {
        self.failed.retain(|_, backoff| !backoff.is_over(now));
        let is_idle = self.waiting.is_empty() && self.running.is_empty() && self.failed.is_empty();
        !is_idle || self.locked.is_some_and(|backoff| !backoff.is_over(now))
    }
}

/// The due objects of all partners.
#[derive(Debug)]
pub(super) struct Schedule<I> {
    limits: Limits,
    partners: BTreeMap<Tenant, Objects<I>>,
    /// The partner of the last started call. The partners after it are next.
    last: Option<Tenant>,
    running: usize,
    /// The last partner of the last read, if that read ended at its limit.
    after: Option<PartnerId>,
    /// The most rows that a read could not read, since the last read of the first partners.
    unreadable: usize,
}

impl<I: Copy + Ord> Schedule<I> {
    pub(super) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            partners: BTreeMap::new(),
            last: None,
            running: 0,
            after: None,
            unreadable: 0,
        }
    }

    /// The next read. It also has room for the objects that are left out.
    pub(super) fn share(&self) -> DueShare {
        let failed = || self.partners.values().map(|objects| objects.failed.len());
        let most = failed().max().unwrap_or_default();
        let enlarged = |limit: u32, left_out: usize| {
            let left_out = left_out.saturating_add(self.unreadable);
            limit.saturating_add(u32::try_from(left_out).unwrap_or(u32::MAX))
        };
        DueShare {
            after: self.after.clone(),
            of_each: enlarged(self.limits.read_of_partner, most),
            limit: enlarged(self.limits.read, failed().sum()),
        }
    }

    /// Takes the objects of a read, which come partner by partner.
    pub(super) fn absorb(
        &mut self,
        share: &DueShare,
        rows: Vec<(Tenant, I)>,
        unreadable: usize,
        now: Instant,
    ) {
        if share.after.is_none() {
            self.clear();
        }
        let is_cut = rows.len().saturating_add(unreadable) >= size(share.limit);
        let last = rows.last().map(|(who, _)| who.partner.clone());
        self.after = last.filter(|_| is_cut);
        let unreadable_before = match share.after {
            None => 0,
            Some(_) => self.unreadable,
        };
        self.unreadable = unreadable_before.max(unreadable).min(MAX_FAILED);
        let mut read: BTreeMap<Tenant, Vec<I>> = BTreeMap::new();
        for (who, id) in rows {
            read.entry(who).or_default().push(id);
        }
        for (who, ids) in read {
            let objects = self.partners.entry(who).or_insert_with(Objects::new);
            objects.absorb(ids, share.of_each, now);
        }
        self.partners.retain(|_, objects| objects.remembers(now));
    }

    /// Forgets the objects that were read and not started.
    fn clear(&mut self) {
        for objects in self.partners.values_mut() {
            objects.waiting.clear();
            objects.has_more = false;
        }
    }

    /// Forgets what was read, so that the next read is the first one and comes after its interval.
    pub(super) fn forget_read(&mut self) {
        self.after = None;
        self.clear();
    }

    /// Starts the next call, unless no call may start. `hangs` returns whether the last calls about a partner's objects all timed out.
    pub(super) fn start_next(
        &mut self,
        now: Instant,
        hangs: impl Fn(&Tenant) -> bool,
    ) -> Option<(Tenant, I)> {
        let who = self.next_partner(now, hangs)?;
        let objects = self.partners.get_mut(&who)?;
        let id = objects.waiting.pop_front()?;
        objects.running.insert(id);
        self.running += 1;
        self.last = Some(who.clone());
        Some((who, id))
    }

    /// The partner with the fewest running calls that may start another one. Among equals it is the next after the last.
    fn next_partner(&self, now: Instant, hangs: impl Fn(&Tenant) -> bool) -> Option<Tenant> {
        let (load, is_serial) = (self.load(&hangs), self.limits.is_serial);
        let last = self.last.as_ref();
        let after = last.map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.partners.range::<Tenant, _>((after, Bound::Unbounded));
        let in_turn = later.chain(&self.partners);
        let may_start = in_turn.filter(|(who, objects)| {
            objects.may_start(is_serial, now) && load.admits(objects.running.len(), hangs(who))
        });
        let next = may_start.min_by_key(|(_, objects)| objects.running.len());
        next.map(|(who, _)| who.clone())
    }

    fn load(&self, hangs: impl Fn(&Tenant) -> bool) -> PermitLoad {
        let running = self.partners.iter();
        let running = running.filter(|(_, objects)| !objects.running.is_empty());
        let hanging = running.filter(|(who, _)| hangs(who));
        PermitLoad {
            total: self.limits.calls,
            held: self.running,
            held_by_hanging: hanging.map(|(_, objects)| objects.running.len()).sum(),
        }
    }

    /// Whether another read would return objects that may start now.
    pub(super) fn wants_read(&self) -> bool {
        let has_free_call = self.running < self.limits.calls;
        has_free_call && (self.after.is_some() || self.partners.values().any(Objects::wants_read))
    }

    /// The instant at which the next locked partner with waiting objects is tried again.
    pub(super) fn next_retry(&self, now: Instant) -> Option<Instant> {
        let waiting = self.partners.values();
        let waiting = waiting.filter(|objects| !objects.waiting.is_empty());
        let running = waiting.filter_map(|objects| objects.locked);
        let running = running.filter(|backoff| backoff.is_running(now));
        running.map(|backoff| backoff.until).min()
    }

    /// Records the end of a call. Returns false if its error needs no log line: nothing failed, or a backoff is running whose first
    /// error was logged.
    pub(super) fn ended(&mut self, who: &Tenant, id: I, outcome: Outcome, now: Instant) -> bool {
        self.running = self.running.saturating_sub(1);
        if outcome == Outcome::StoreUnavailable {
            self.forget_read();
        }
        let objects = self.partners.get_mut(who);
        objects.is_none_or(|objects| objects.ended(id, outcome, now))
    }
}

fn size(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
