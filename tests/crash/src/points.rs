//! Every crash point once: the process ends there under load, the step fails there, or is held up there.

mod roads;

use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use instruments::failpoint::{Side, Step};
use kernel::Mode;

use crate::Result;
use crate::book::Deposit;
use crate::caller::{Front, Run, number};
use crate::gate::Gate;
use crate::history::{ANSWERED_WITHIN, Op};
use crate::http::{Client, request};
use crate::kills::{Tally, close, load_until, up};
use crate::orders::Asset;
use crate::pace::{self, Recovery};
use crate::programs::{Installation, Programs, Served};
use crate::servers::Servers;
use crate::subject::Subject;
use crate::time;
use crate::world::{POOR, World, credit_words};
pub(crate) use roads::{Chosen, Database};
use roads::{Road, of_a_handler, of_the_disk, road_to};

/// Load runs this long at most until a point is reached; a machine with nothing else to do needs a second or two.
const REACHED_WITHIN: Duration = Duration::from_secs(90);
/// The engine of a campaign loses some of its responses: at most one answer in so many says so.
const ENGINE_FAILS_AT_MOST: usize = 20;
/// The codes a client may see while steps fail, beside those it always sees.
const DOCUMENTED: [&str; 4] = [
    "engine_unavailable",
    "outcome_unknown",
    "overloaded",
    "service_unavailable",
];
/// Short-lived records, so that the sweep has something to delete.
const SWEPT: [(&str, &str); 1] = [("PENSTOCK_IDEMPOTENCY_TTL", "1s")];

/// What is counted besides the tally.
#[derive(Debug, Default)]
pub(crate) struct Points {
    pub(crate) tally: Tally,
    /// Points at which the process ended.
    pub(crate) ended: u64,
    /// Points at which a step failed.
    pub(crate) failed: u64,
    /// Points at which a step was held up.
    pub(crate) held_up: u64,
    /// How the service came back after its steps had failed, panicked or been held up.
    pub(crate) recoveries: Vec<String>,
}

impl Points {
    /// The seed of the next case.
    fn next_seed(&self, seed: u64) -> u64 {
        seed.wrapping_mul(10_000).wrapping_add(self.tally.rounds)
    }

    /// A process has ended at a point.
    fn end(&mut self) {
        self.ended += 1;
        self.tally.kills += 1;
    }
}

/// Every point of the pools in every manner.
// rule: base.acknowledged-is-kept, pools.transact.atomic, idempotency.same-transaction, idempotency.unknown-commit
// rule: webhook.at-least-once
pub(crate) fn pools(programs: &Programs, chosen: &Chosen, seed: u64) -> Result<Points> {
    let of_pools = |road| !matches!(road, Road::Gate | Road::LiveGate);
    again_and_again(
        programs,
        Served::Pools,
        chosen,
        seed,
        |installation, seed, points| {
            if chosen.part == 1 && chosen.step.is_none() && chosen.store == Database::Embedded {
                fresh(&installation.folder.join("fresh"), programs, points)?;
            }
            let world = World::on(installation, seed)?;
            for (step, point) in chosen.points(of_pools, seed) {
                let of_point = points.next_seed(seed);
                let ended = end_at(&world, chosen.store, step, &point, of_point, points);
                settle(&world, &point, of_point, points, ended)?;
            }
            under_load(&world, chosen, seed, points)
        },
    )
}

/// Every point of the gate's own in every manner, of live sessions each once. At those of events, deliveries and answers, which
/// are the pools' too, a step fails and is held up.
// rule: base.acknowledged-is-kept, gate.session.one-end, gate.event.once, idempotency.gate-replay, idempotency.unknown-commit
// rule: gate.quota.exact, webhook.at-least-once
pub(crate) fn gate(programs: &Programs, chosen: &Chosen, seed: u64) -> Result<Points> {
    again_and_again(
        programs,
        Served::Gate,
        chosen,
        seed,
        |installation, seed, points| {
            let sandbox = Gate::on(installation.clone(), Mode::Test, seed)?;
            all_end(
                &sandbox,
                &chosen.points(|road| road == Road::Gate, seed),
                seed,
                points,
            )?;
            under_load(&sandbox, chosen, seed, points)?;
            let live = Gate::on(installation, Mode::Live, seed)?;
            all_end(
                &live,
                &chosen.points(|road| road == Road::LiveGate, seed),
                seed,
                points,
            )?;
            closed(&live, seed, points)
        },
    )
}

/// So many times all of it, each with a database and a seed of its own, until something is found.
fn again_and_again(
    programs: &Programs,
    served: Served,
    chosen: &Chosen,
    seed: u64,
    all: impl Fn(Installation, u64, &mut Points) -> Result<()>,
) -> Result<Points> {
    let mut points = Points::default();
    for turn in 0..chosen.repeat {
        let seed = seed.wrapping_add(turn);
        let folder = tempfile::tempdir()?;
        let servers = match chosen.store {
            Database::Embedded => None,
            Database::Postgres => Some(Servers::start()?),
        };
        let told = servers.as_ref().map(Servers::settings).unwrap_or_default();
        let told: Vec<(&str, &str)> = told
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let installation = Installation::new(folder.path(), programs, &told).of(served);
        if let Some(servers) = &servers {
            servers.migrate(&installation)?;
        }
        if let Err(fault) = all(installation, seed, &mut points) {
            let round = points.tally.rounds;
            points.tally.blame(seed, round, vec![fault.to_string()]);
        }
        if !points.tally.breaches.is_empty() {
            if let Some(servers) = servers {
                std::fs::write(folder.path().join("database.sql"), servers.dump()?)?;
            }
            points.tally = crate::kills::keep(folder, points.tally)?;
            break;
        }
    }
    Ok(points)
}

/// The process ends at each of these points.
fn all_end(
    subject: &dyn Subject,
    chosen: &[(Step, String)],
    seed: u64,
    points: &mut Points,
) -> Result<()> {
    for (_, point) in chosen {
        let of_point = points.next_seed(seed);
        let ended = load_ends(subject, point, of_point, points);
        settle(subject, point, of_point, points, ended)?;
    }
    Ok(())
}

/// The process ends when a delivery has arrived; then every point that clients reach is disturbed in each manner.
fn under_load(
    subject: &dyn Subject,
    chosen: &Chosen,
    seed: u64,
    points: &mut Points,
) -> Result<()> {
    if chosen.step.is_some() {
        return closed(subject, seed, points);
    }
    let of_point = points.next_seed(seed);
    let ended = end_on_receipt(subject, of_point, points);
    let what = "a delivery received and not answered";
    settle(subject, what, of_point, points, ended)?;
    for word in chosen.manners(seed) {
        let of_word = points.next_seed(seed);
        let disturbed = disturb(subject, chosen, word, of_word, points);
        settle(subject, word, of_word, points, disturbed)?;
    }
    closed(subject, seed, points)
}

fn closed(subject: &dyn Subject, seed: u64, points: &mut Points) -> Result<()> {
    let breaches = close(subject, &mut points.tally)?;
    let round = points.tally.rounds;
    points.tally.blame(seed, round, breaches);
    Ok(())
}

/// After a fault: up again without it, everything found out, compared and verified.
fn settle(
    subject: &dyn Subject,
    what: &str,
    seed: u64,
    points: &mut Points,
    fault: Result<()>,
) -> Result<()> {
    fault.map_err(|fault| format!("{what}: {fault}"))?;
    let tally = &mut points.tally;
    let service = up(subject, tally)?;
    tally.resolved += subject.converge(service.address)?;
    let breaches = subject.judge(service.address, false)?;
    service.kill();
    subject.installation().verify()?;
    tally.verified += 1;
    let named = breaches
        .into_iter()
        .map(|breach| format!("{what}: {breach}"))
        .collect();
    tally.blame(seed, tally.rounds, named);
    tally.rounds += 1;
    if tally.breaches.is_empty() {
        Ok(())
    } else {
        Err("a breach".into())
    }
}

/// An empty folder, and a process that ends while it makes the database: the next start goes on.
fn fresh(folder: &std::path::Path, programs: &Programs, points: &mut Points) -> Result<()> {
    for step in [Step::MigrationRun, Step::MigrationCommit, Step::OtherCommit] {
        for side in [Side::Before, Side::After] {
            let point = step.point(side);
            let folder = folder.join(&point);
            std::fs::create_dir_all(&folder)?;
            let installation = Installation::new(&folder, programs, &[]);
            ended_at_start(&installation, &point)?;
            let service = installation.serve(None, &[])?;
            service.kill();
            installation.verify()?;
            points.tally.verified += 1;
            points.tally.kills += 1;
        }
    }
    Ok(())
}

/// The service is started with a point armed, and ends before it listens.
fn ended_at_start(installation: &Installation, point: &str) -> Result<()> {
    match installation.serve(Some(&format!("{point}=1*return(abort)")), &[]) {
        Ok(_) => Err(format!("{point} was not reached by a start").into()),
        Err(fault) => fired(&fault.to_string(), point, "abort"),
    }
}

fn fired(said: &str, point: &str, word: &str) -> Result<()> {
    let line = format!("failpoint {point} {word}");
    if said.contains(&line) {
        return Ok(());
    }
    Err(format!("{point} was not reached: {said}").into())
}

/// The process ends at a point.
fn end_at(
    world: &World,
    store: Database,
    step: Step,
    point: &str,
    seed: u64,
    points: &mut Points,
) -> Result<()> {
    match road_to(step) {
        // A server's schema is brought up to date when that is asked for.
        Road::Start if store == Database::Postgres && step != Step::OtherCommit => {
            let armed = format!("{point}=1*return(abort)");
            let mut migrating = world.installation.service(Some(&armed));
            let done = migrating.arg("migrate").output()?;
            fired(&String::from_utf8_lossy(&done.stderr), point, "abort")?;
        }
        Road::Start => ended_at_start(&world.installation, point)?,
        Road::Credit => credit_ends(world, point)?,
        Road::Revoke => revoke_ends(world, point)?,
        Road::Sweep => {
            let armed = format!("{point}=1*return(abort)");
            let said = match world.installation.serve(Some(&armed), &SWEPT) {
                Ok(service) => {
                    service.ends_within(REACHED_WITHIN);
                    service.said()?
                }
                // The sweep begins before the service listens.
                Err(fault) => fault.to_string(),
            };
            fired(&said, point, "abort")?;
        }
        Road::Pools | Road::Either => return load_ends(world, point, seed, points),
        Road::Gate | Road::LiveGate => return Err(format!("{point} is the gate's").into()),
    }
    points.end();
    Ok(())
}

/// The process ends at a point that clients reach.
fn load_ends(subject: &dyn Subject, point: &str, seed: u64, points: &mut Points) -> Result<()> {
    let passes = fastrand::Rng::with_seed(seed).u64(0..4);
    let armed = format!("{point}={passes}*off->1*return(abort)");
    let service = subject.installation().serve(Some(&armed), &[])?;
    let ops = load_until(subject, &Front::of(&service), seed, |_| {
        service.ends_within(REACHED_WITHIN);
        service.kill();
    });
    points.tally.gates.add(ops);
    fired(&service.said()?, point, "abort")?;
    points.end();
    Ok(())
}

/// A delivery arrives, and the service is killed before it is answered.
fn end_on_receipt(subject: &dyn Subject, seed: u64, points: &mut Points) -> Result<()> {
    let service = subject.installation().serve(None, &[])?;
    subject.receiver().kill_on_receipt(&service);
    let mut ended = false;
    let ops = load_until(subject, &Front::of(&service), seed, |_| {
        ended = service.ends_within(REACHED_WITHIN);
    });
    points.tally.gates.add(ops);
    points.tally.kills += 1;
    if ended {
        return Ok(());
    }
    Err("no delivery arrived".into())
}

/// The operator's program ends while it credits; the same reference again finds out.
fn credit_ends(world: &World, point: &str) -> Result<()> {
    let partner = world.partners.get(POOR).ok_or("no such partner")?;
    let reference = format!("deposit-{}", number());
    let deposit = Deposit::of(Asset::Eur, 12_345);
    let words = credit_words(&partner.name, &reference, &deposit);
    partner.book.lock().deposits.insert(reference, deposit);
    penstock_ends(world, point, &words)
}

/// The operator's program ends while it revokes a key; revoked again it is revoked, and nothing gets in with it.
fn revoke_ends(world: &World, point: &str) -> Result<()> {
    let partner = world.partners.first().ok_or("no such partner")?;
    let made = world.installation.penstock(&[
        "key",
        "create",
        "--partner",
        &partner.name,
        "--kind",
        "secret",
    ])?;
    let text = |name: &str| {
        let found = made.get(name).and_then(serde_json::Value::as_str);
        found
            .map(str::to_owned)
            .ok_or(format!("key create: {made}"))
    };
    let (id, key) = (text("id")?, text("key")?);
    let words = ["key", "revoke", "--key-id", &id].map(str::to_owned);
    penstock_ends(world, point, &words)?;
    world
        .installation
        .penstock(&["key", "revoke", "--key-id", &id])?;
    let service = world.installation.serve(None, &[])?;
    let asked = request(&key, "GET", "/pools/EUR-USDT/balance", "", "");
    let answer = Client::new(service.address).call(&asked);
    service.kill();
    match answer {
        Ok(answer) if (answer.status, answer.code().as_str()) == (403, "key_revoked") => Ok(()),
        other => Err(format!("a revoked key was answered {other:?}").into()),
    }
}

fn penstock_ends(world: &World, point: &str, words: &[String]) -> Result<()> {
    let armed = format!("{point}=1*return(abort)");
    let mut command = world.installation.command("penstock", Some(&armed));
    let done = command.args(words).stdout(Stdio::null()).output()?;
    if done.status.success() {
        return Err(format!("{point}: the program went on").into());
    }
    fired(&String::from_utf8_lossy(&done.stderr), point, "abort")
}

/// Every point that clients reach fails, panics, or is held up, once in one run under load. Clients see documented
/// faults only, and once the last one has passed all is as before.
fn disturb(
    subject: &dyn Subject,
    chosen: &Chosen,
    word: &str,
    seed: u64,
    points: &mut Points,
) -> Result<()> {
    let served = subject.installation().served;
    let all = Chosen {
        part: 1,
        ..chosen.clone()
    };
    let armed: Vec<String> = all
        .points(|road| road.is_load_of(served), seed)
        .into_iter()
        .filter(|(step, _)| match word {
            "full" => of_the_disk(*step),
            "panic" => of_a_handler(*step),
            _ => true,
        })
        .map(|(_, point)| point)
        .collect();
    let mut chance = fastrand::Rng::with_seed(seed);
    let text: Vec<String> = armed
        .iter()
        .map(|point| format!("{point}={}*off->1*return({word})", chance.u8(0..4)))
        .collect();
    let normal = undisturbed(subject, seed)?;
    let service = subject.installation().serve(Some(&text.join(";")), &[])?;
    let all_fired = || {
        let said = service.said().unwrap_or_default();
        armed.iter().all(|point| fired(&said, point, word).is_ok())
    };
    let mut last_fault = Duration::ZERO;
    let ops = load_until(subject, &Front::of(&service), seed, |run| {
        let began = time::now();
        while !all_fired() && time::now().saturating_sub(began) < REACHED_WITHIN {
            thread::sleep(Duration::from_millis(50));
        }
        last_fault = time::now();
        until_judged(run);
    });
    service.kill();
    let said = service.said()?;
    for point in &armed {
        fired(&said, point, word)?;
    }
    match word {
        "wait 25" => points.held_up += armed.len() as u64,
        _ => points.failed += armed.len() as u64,
    }
    let judged = documented(&ops, word).and_then(|()| recovered(&ops, last_fault, normal));
    points.tally.gates.add(ops);
    points.recoveries.push(format!("{word}: {}", judged?));
    Ok(())
}

/// How fast the same program answers the same clients without faults.
fn undisturbed(subject: &dyn Subject, seed: u64) -> Result<Duration> {
    let service = subject.installation().serve(Some(""), &[])?;
    let ops = load_until(subject, &Front::of(&service), seed, until_judged);
    service.kill();
    pace::normal(&ops)
}

/// Until enough has been answered to tell a pace.
fn until_judged(run: &Run) {
    let (began, before) = (time::now(), run.ended.load(Ordering::Relaxed));
    let answered = || run.ended.load(Ordering::Relaxed).saturating_sub(before);
    while answered() < pace::JUDGED && time::now().saturating_sub(began) < pace::BACK_WITHIN {
        thread::sleep(Duration::from_millis(20));
    }
}

fn documented(ops: &[Op], word: &str) -> Result<()> {
    for (status, code) in ops.iter().filter_map(|op| op.said.as_ref()) {
        let known = match *status {
            503 => DOCUMENTED.contains(&code.as_str()),
            500 => word == "panic" && code == "internal_error",
            501 => code == "side_not_enabled",
            status => status < 500,
        };
        if !known {
            return Err(format!("a client was answered {status} {code}").into());
        }
    }
    let slow = ops.iter().find(|op| op.took() > ANSWERED_WITHIN);
    slow.map_or(Ok(()), |op| Err(format!("too slow: {op:?}").into()))
}

/// After the last fault nothing but the engine fails, the engine as seldom as always, and nothing is slow for long.
fn recovered(ops: &[Op], last_fault: Duration, normal: Duration) -> Result<Recovery> {
    let later: Vec<&Op> = ops.iter().filter(|op| op.invoked > last_fault).collect();
    let said = |code: &str| {
        let with_code = |op: &&&Op| op.said.as_ref().is_some_and(|(_, said)| said == code);
        later.iter().filter(with_code).count()
    };
    // A client that hangs up by itself has no answer; it is never answered 500 or 503.
    let fails =
        |op: &&&Op| matches!(&op.said, Some((500 | 503, code)) if code != "engine_unavailable");
    if let Some(op) = later.iter().find(fails) {
        return Err(format!("still failing: {op:?}").into());
    }
    let (silent, asked) = (said("engine_unavailable"), later.len());
    if silent * ENGINE_FAILS_AT_MOST > asked {
        return Err(format!("the engine still fails: {silent} of {asked} answers").into());
    }
    pace::recovery(ops, last_fault, normal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Kind, Outcome};

    /// So many operations after the fault, of which each with a place below `failing` is answered 503 with `code`.
    fn recovers(failing: u64, code: &str) -> Result<Recovery> {
        let op = |place: u64| Op {
            client: 1,
            kind: Kind::Transact,
            partner: String::new(),
            object: None,
            key: None,
            invoked: Duration::from_millis(10 + place),
            completed: Duration::from_millis(12 + place),
            outcome: Outcome::Ok,
            said: Some(match place < failing {
                true => (503, code.to_owned()),
                false => (200, String::new()),
            }),
            seen: None,
            repeated: false,
            with: None,
        };
        let ops: Vec<Op> = (0..500).map(op).collect();
        recovered(&ops, Duration::from_millis(1), Duration::from_millis(2))
    }

    #[test]
    fn service_has_recovered_when_only_the_engine_fails_and_seldom() {
        assert!(recovers(0, "").is_ok());
        assert!(recovers(25, "engine_unavailable").is_ok());
        assert!(recovers(26, "engine_unavailable").is_err());
        assert!(recovers(1, "service_unavailable").is_err());
    }
}
