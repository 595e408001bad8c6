//! Every crash point once: the process ends there under load, or the step fails or is delayed there.

mod paths;
mod recovery;

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use instruments::failpoint::Side;
use kernel::Mode;
use test_support::time;

use crate::Result;
use crate::book::Deposit;
use crate::caller::{Front, number};
use crate::gate::Gate;
use crate::history::{MAX_RESPONSE_TIME, Op};
use crate::http::{Client, request};
use crate::kills::{Tally, close, load_until, up};
use crate::orders::Asset;
use crate::pace::{self, Recovery};
use crate::programs::{Installation, Programs, Served};
use crate::servers::Servers;
use crate::subject::Subject;
use crate::world::{POOR, World, credit_words};
pub(crate) use paths::{Chosen, Database, Part};
use paths::{DELAY, Reach, START_COMMIT, is_of_handler, reach_of, writes_to_disk};
use recovery::{recovered, wait_for_recovery};

/// Time after which a run that makes no progress is given up. An idle machine needs a second or two.
const REACH_TIMEOUT: Duration = Duration::from_secs(600);
/// Codes that clients may receive while steps fail, in addition to the usual ones.
const DOCUMENTED: [&str; 4] = [
    "engine_unavailable",
    "outcome_unknown",
    "overloaded",
    "service_unavailable",
];
/// Short-lived records, so that the sweep has something to delete.
const SWEPT: [(&str, &str); 1] = [("PENSTOCK_IDEMPOTENCY_TTL", "1s")];

/// Counts in addition to the tally.
#[derive(Debug, Default)]
pub(crate) struct Points {
    pub(crate) tally: Tally,
    /// Points at which the process ended.
    pub(crate) ended: u64,
    /// Points at which a step failed.
    pub(crate) failed: u64,
    /// Points at which a step was delayed.
    pub(crate) held_up: u64,
    /// Recovery of the service after its steps were delayed.
    pub(crate) recoveries: Vec<String>,
}

impl Points {
    /// Returns the seed of the next case.
    fn next_seed(&self, seed: u64) -> u64 {
        seed.wrapping_mul(10_000).wrapping_add(self.tally.rounds)
    }

    /// Records that a process ended at a point.
    fn end(&mut self) {
        self.ended += 1;
        self.tally.kills += 1;
    }
}

/// Tries every point of the pools in every manner.
// rule: base.acknowledged-is-kept, pools.transact.atomic, idempotency.same-transaction, idempotency.unknown-commit
// rule: webhook.at-least-once
pub(crate) fn pools(programs: &Programs, chosen: &Chosen, seed: u64) -> Result<Points> {
    if chosen.part.is_some() {
        return Err("only the run of the gate has parts".into());
    }
    again_and_again(
        programs,
        Served::Pools,
        chosen,
        seed,
        |installation, seed, points| {
            match chosen.store {
                _ if chosen.step.is_some() => {}
                Database::Embedded => {
                    fresh(&installation.folder.join("fresh"), programs, points)?;
                }
                Database::Postgres => begun(&installation, points)?,
            }
            let world = World::on(installation, seed)?;
            let mut ends = chosen.points(|reach| !reach.is_of_gate());
            // Only the first start commits, and the world has started.
            ends.retain(|(step, _)| *step != START_COMMIT);
            for (step, point) in ends {
                let of_point = points.next_seed(seed);
                let ended = end_at(&world, chosen.store, step, &point, of_point, points);
                settle(&world, &point, of_point, points, ended)?;
            }
            under_load(&world, chosen, seed, points)
        },
    )
}

/// Tries every point of the gate alone in every manner; those of payments once more with live sessions, which a provider settles. At the points of events, deliveries and
/// stored responses, which the pools share, a step fails and is delayed.
// rule: base.acknowledged-is-kept, gate.session.one-end, gate.event.once, idempotency.gate-replay, idempotency.unknown-commit
// rule: gate.quota.exact, webhook.at-least-once, gate.payment.once, rail.http.once
pub(crate) fn gate(programs: &Programs, chosen: &Chosen, seed: u64) -> Result<Points> {
    again_and_again(
        programs,
        Served::Gate,
        chosen,
        seed,
        |installation, seed, points| match chosen.part {
            None => whole_gate(installation, chosen, seed, points),
            Some(part) => part_of_gate(part, installation, chosen, seed, points),
        },
    )
}

/// Tries all points of the gate on one database: with sandbox sessions, then with live sessions.
fn whole_gate(
    installation: Installation,
    chosen: &Chosen,
    seed: u64,
    points: &mut Points,
) -> Result<()> {
    let sandbox = Gate::on(installation.clone(), Mode::Test, seed)?;
    let of_sandbox = |reach| Part::Mixed.ends_at(reach) || Part::Payments.ends_at(reach);
    all_end(&sandbox, &chosen.points(of_sandbox), seed, points)?;
    under_load(&sandbox, chosen, seed, points)?;
    let live = Gate::on(installation, Mode::Live, seed)?;
    let of_live = |reach| Part::Live.ends_at(reach);
    all_end(&live, &chosen.points(of_live), seed, points)?;
    closed(&live, seed, points)
}

/// Tries the points of a part of the gate's run. Most operations are payments where all points are those of payments, which the mixed
/// load reaches rarely.
fn part_of_gate(
    part: Part,
    installation: Installation,
    chosen: &Chosen,
    seed: u64,
    points: &mut Points,
) -> Result<()> {
    let in_mode = |mode| Gate::on(installation, mode, seed);
    let gate = match part {
        Part::Mixed | Part::Failing => in_mode(Mode::Test)?,
        Part::Payments => in_mode(Mode::Test)?.mostly_paying(),
        Part::Live => in_mode(Mode::Live)?.mostly_paying(),
    };
    if part == Part::Failing {
        return under_load(&gate, chosen, seed, points);
    }
    let ends = chosen.points(|reach| part.ends_at(reach));
    all_end(&gate, &ends, seed, points)?;
    closed(&gate, seed, points)
}

/// Repeats the whole run, each time with a database and a seed of its own, until a breach is found.
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

/// Ends the process at each of these points.
fn all_end(
    subject: &dyn Subject,
    chosen: &[(&str, String)],
    seed: u64,
    points: &mut Points,
) -> Result<()> {
    for (_, point) in chosen {
        let of_point = points.next_seed(seed);
        subject.reconfigure(&mut fastrand::Rng::with_seed(of_point));
        let ended = load_ends(subject, point, of_point, points);
        settle(subject, point, of_point, points, ended)?;
    }
    Ok(())
}

/// Ends the process when a delivery arrives, then disturbs every point that clients reach in each manner.
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
    let what = "a delivery without a response";
    settle(subject, what, of_point, points, ended)?;
    for word in chosen.manners() {
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

/// After a fault: starts the service without the fault, resolves every outcome, compares and verifies.
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

/// Ends a process while it creates the database in an empty folder. The next start must continue.
fn fresh(folder: &std::path::Path, programs: &Programs, points: &mut Points) -> Result<()> {
    for step in ["migration.run", "migration.commit", START_COMMIT] {
        for side in Side::BOTH {
            let point = side.of(&step);
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

/// Ends a process at the first commit of an installation on a server. The next start must continue.
fn begun(installation: &Installation, points: &mut Points) -> Result<()> {
    for side in Side::BOTH {
        ended_at_start(installation, &side.of(&START_COMMIT))?;
        points.tally.kills += 1;
    }
    Ok(())
}

/// Starts the service with a point armed. It must end before it listens.
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

/// Ends the process at a point.
fn end_at(
    world: &World,
    store: Database,
    step: &str,
    point: &str,
    seed: u64,
    points: &mut Points,
) -> Result<()> {
    match reach_of(step) {
        // The schema of a Postgres database is migrated only by a command.
        Reach::Start if store == Database::Postgres => {
            let armed = format!("{point}=1*return(abort)");
            let mut migrating = world.installation.service(Some(&armed));
            let done = migrating.arg("migrate").output()?;
            fired(&String::from_utf8_lossy(&done.stderr), point, "abort")?;
        }
        Reach::Start => ended_at_start(&world.installation, point)?,
        Reach::Credit => credit_ends(world, point)?,
        Reach::Revoke => revoke_ends(world, point)?,
        Reach::Sweep => {
            let armed = format!("{point}=1*return(abort)");
            let said = match world.installation.serve(Some(&armed), &SWEPT) {
                Ok(service) => {
                    service.ends_within(REACH_TIMEOUT);
                    service.said()?
                }
                // The sweep starts before the service listens.
                Err(fault) => fault.to_string(),
            };
            fired(&said, point, "abort")?;
        }
        Reach::Pools | Reach::Either => return load_ends(world, point, seed, points),
        Reach::Gate | Reach::LiveGate | Reach::Widget | Reach::Rail => {
            return Err(format!("{point} is the gate's").into());
        }
    }
    points.end();
    Ok(())
}

/// Ends the process at a point that clients reach.
fn load_ends(subject: &dyn Subject, point: &str, seed: u64, points: &mut Points) -> Result<()> {
    let passes = fastrand::Rng::with_seed(seed).u64(0..4);
    let armed = format!("{point}={passes}*off->1*return(abort)");
    let service = match subject.installation().serve(Some(&armed), &[]) {
        Ok(service) => service,
        // A background task may reach the point before the service listens.
        Err(fault) => {
            fired(&fault.to_string(), point, "abort")?;
            points.end();
            return Ok(());
        }
    };
    let ops = load_until(subject, &Front::of(&service), seed, |_| {
        service.ends_within(REACH_TIMEOUT);
        service.kill();
    });
    points.tally.gates.add(ops);
    fired(&service.said()?, point, "abort")?;
    points.end();
    Ok(())
}

/// Kills the service after a delivery arrives and before its response.
fn end_on_receipt(subject: &dyn Subject, seed: u64, points: &mut Points) -> Result<()> {
    let service = subject.installation().serve(None, &[])?;
    subject.receiver().kill_on_receipt(&service);
    let mut ended = false;
    let ops = load_until(subject, &Front::of(&service), seed, |_| {
        ended = service.ends_within(REACH_TIMEOUT);
    });
    points.tally.gates.add(ops);
    points.tally.kills += 1;
    if ended {
        return Ok(());
    }
    Err("no delivery arrived".into())
}

/// Ends `penstock` during a credit. The same reference again resolves the outcome.
fn credit_ends(world: &World, point: &str) -> Result<()> {
    let partner = world.partners.get(POOR).ok_or("no such partner")?;
    let reference = format!("deposit-{}", number());
    let deposit = Deposit::of(Asset::Eur, 12_345);
    let words = credit_words(&partner.name, &reference, &deposit);
    partner.book.lock().deposits.insert(reference, deposit);
    penstock_ends(world, point, &words)
}

/// Ends `penstock` while it revokes a key. A second revocation succeeds, and the key is then rejected.
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
    let answer = Client::new(service.address).call_until_served(&asked);
    service.kill();
    match answer {
        Ok(answer) if (answer.status, answer.code().as_str()) == (403, "key_revoked") => Ok(()),
        other => Err(format!("a revoked key received {other:?}").into()),
    }
}

fn penstock_ends(world: &World, point: &str, words: &[String]) -> Result<()> {
    let armed = format!("{point}=1*return(abort)");
    let mut command = world.installation.command("penstock", Some(&armed));
    let done = command.args(words).stdout(Stdio::null()).output()?;
    if done.status.success() {
        return Err(format!("{point}: the program did not end").into());
    }
    fired(&String::from_utf8_lossy(&done.stderr), point, "abort")
}

/// Makes every point that clients reach fail, panic or wait, once each in one run under load. Clients receive documented errors
/// only, and after the last fault everything is as before.
fn disturb(
    subject: &dyn Subject,
    chosen: &Chosen,
    word: &str,
    seed: u64,
    points: &mut Points,
) -> Result<()> {
    let served = subject.installation().served;
    let armed: Vec<String> = chosen
        .points(|reach| reach.is_load_of(served))
        .into_iter()
        .filter(|(step, _)| match word {
            "full" => writes_to_disk(step),
            "panic" => is_of_handler(step),
            _ => true,
        })
        .map(|(_, point)| point)
        .collect();
    let mut chance = fastrand::Rng::with_seed(seed);
    let text: Vec<String> = armed
        .iter()
        .map(|point| format!("{point}={}*off->1*return({word})", chance.u8(0..4)))
        .collect();
    let normal = match word {
        DELAY => Some(undisturbed(subject, seed)?),
        _ => None,
    };
    let service = subject.installation().serve(Some(&text.join(";")), &[])?;
    let all_fired = || {
        let said = service.said().unwrap_or_default();
        armed.iter().all(|point| fired(&said, point, word).is_ok())
    };
    let mut last_fault = Duration::ZERO;
    let ops = load_until(subject, &Front::of(&service), seed, |run| {
        let began = time::now();
        while !all_fired() && time::now().saturating_sub(began) < REACH_TIMEOUT {
            thread::sleep(Duration::from_millis(50));
        }
        last_fault = time::now();
        wait_for_recovery(run, last_fault);
    });
    service.kill();
    let said = service.said()?;
    for point in &armed {
        fired(&said, point, word)?;
    }
    match word {
        DELAY => points.held_up += armed.len() as u64,
        _ => points.failed += armed.len() as u64,
    }
    let judged = documented(&ops, word).and_then(|()| recovered(&ops, last_fault));
    let recovery = normal.map(|normal| in_time(&ops, last_fault, normal));
    points.tally.gates.add(ops);
    judged?;
    let recovery = recovery.transpose()?;
    points
        .recoveries
        .extend(recovery.map(|back| back.to_string()));
    Ok(())
}

/// Measures the response times of the same program without faults.
fn undisturbed(subject: &dyn Subject, seed: u64) -> Result<Duration> {
    let service = subject.installation().serve(Some(""), &[])?;
    let ops = load_until(subject, &Front::of(&service), seed, |run| {
        wait_for_recovery(run, Duration::ZERO);
    });
    service.kill();
    pace::normal(&ops)
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
            return Err(format!("a client received {status} {code}").into());
        }
    }
    Ok(())
}

/// Checks that no response of a run with delays took longer than every deadline, and that the usual pace soon returned.
fn in_time(ops: &[Op], last_fault: Duration, normal: Duration) -> Result<Recovery> {
    if let Some(op) = ops.iter().find(|op| op.took() > MAX_RESPONSE_TIME) {
        return Err(format!("too slow: {op:?}").into());
    }
    pace::recovery(ops, last_fault, normal)
}
