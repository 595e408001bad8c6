//! Checks with strace that the log is on disk before the first byte of a response.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::Result;
use crate::caller::number;
use crate::http::{Client, request};
use crate::programs::{Installation, Programs, Service};

const KEY: &str = "sk_test_00000000000000000000000000000009";
/// Turns of quote, transact, poll, and quote, reject: five responses each.
const TURNS: usize = 12;
const RESPONSES_PER_TURN: usize = 5;
const RESPONSES: usize = TURNS * RESPONSES_PER_TURN;
const CALLS: &str = "trace=pwrite64,fdatasync,fsync,write,writev,sendto,sendmsg";
/// The part of a line of the trace that shows a response.
const RESPONSE: &str = "\"HTTP/1.1 200 ";

/// Result of the trace.
#[derive(Debug)]
pub(crate) enum Seen {
    /// Why the machine cannot trace.
    NotChecked(String),
    /// Number of responses to writes, of which those of each place in a turn came after the log was on disk.
    Synced(usize),
}

/// Traces one client that sends one write after another.
// rule: base.flushed-first
pub(crate) fn run(programs: &Programs) -> Result<Seen> {
    if let Some(why) = cannot_trace() {
        return Ok(Seen::NotChecked(why));
    }
    let folder = tempfile::tempdir()?;
    let installation = Installation::new(folder.path(), programs, &[]);
    provision(&installation)?;
    let trace = folder.path().join("trace");
    let plain = installation.command("pools-service", None);
    let mut command = Command::new("strace");
    // The tracer detaches itself, so the child is the service.
    command
        .args(["-D", "-f", "-y", "-s", "16", "-e", CALLS, "-o"])
        .arg(&trace);
    command.arg(plain.get_program()).current_dir(folder.path());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let service = Service::start(command, &folder.path().join("service.log"))?;
    ask(&service)?;
    service.kill();
    let text = whole(&trace)?;
    let answers = synced_answers(&after_first_turn(&text))?;
    if answers != RESPONSES {
        return Err(format!("{RESPONSES} responses expected in the trace, {answers} found").into());
    }
    Ok(Seen::Synced(answers))
}

/// Returns why a program cannot be traced on this machine; `None` if it can.
fn cannot_trace() -> Option<String> {
    let mut trial = Command::new("strace");
    trial
        .args(["-e", "trace=none", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match trial.status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("strace may not trace a program here ({status})")),
        Err(fault) => Some(format!(
            "strace cannot be run ({fault}); Debian and Ubuntu: `apt install strace`"
        )),
    }
}

/// The document of a partner without an endpoint, so that only its requests write.
fn provision(installation: &Installation) -> Result<()> {
    let text = format!(
        "[[pools]]\nid = \"EUR-USDT\"\nnetworks = [\"tron\"]\navailable = true\n\
         [[partners]]\nid = \"synced\"\nname = \"Synced\"\nstatus = \"active\"\n\
         [partners.pools]\nenabled = true\naccess = \"active\"\nkyc = \"approved\"\nallowed = [\"EUR-USDT\"]\n\
         balance_gate = true\nvelocity_cap_usdt = \"none\"\n\
         [[partners.keys]]\nkind = \"secret\"\nkey = \"{KEY}\"\n"
    );
    let file = installation.folder.join("partner.toml");
    std::fs::write(&file, text)?;
    installation.penstock(&["apply", "-f", &file.to_string_lossy()])?;
    let words = "balance credit --partner synced --currency EUR --amount 10000.00 --ref opening";
    let words: Vec<&str> = words.split(' ').collect();
    installation.penstock(&words)?;
    Ok(())
}

/// Returns the trace when the tracer, which writes with a delay, has told the end of the service.
fn whole(trace: &Path) -> Result<String> {
    for _ in 0..600 {
        let text = std::fs::read_to_string(trace)?;
        if text.contains("+++ killed by SIGKILL") {
            return Ok(text);
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err("the trace does not tell the end of the service".into())
}

fn ask(service: &Service) -> Result<()> {
    let mut client = Client::new(service.address);
    let mut asked = |method: &str, path: &str, headers: &str, body: &str| {
        let answer = client.call_until_served(&request(KEY, method, path, headers, body));
        match answer {
            Ok(answer) if answer.status == 200 => Ok(answer),
            other => Err(format!("{method} {path}: {other:?}")),
        }
    };
    let quote = "{\"side\":\"on_ramp\",\"fiatCurrency\":\"EUR\",\"cryptoCurrency\":\"USDT\",\"amount\":\"10.00\",\
                 \"destAddress\":\"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed\"}";
    // One turn more: during the first, background tasks may still write what they write once at their start.
    for _ in 0..=TURNS {
        let id = asked("POST", "/pools/EUR-USDT/quote", "", quote)?;
        let id = id.text("quoteId").ok_or("no quote")?;
        let key = format!("Idempotency-Key: key-{}\r\n", number());
        let body = format!("{{\"quoteId\":\"{id}\"}}");
        asked("POST", "/pools/EUR-USDT/transact", &key, &body)?;
        asked("GET", &format!("/pools/transactions/{id}"), "", "")?;
        let id = asked("POST", "/pools/EUR-USDT/quote", "", quote)?;
        let id = id.text("quoteId").ok_or("no quote")?;
        asked("POST", &format!("/pools/quotes/{id}/reject"), "", "")?;
    }
    Ok(())
}

/// Returns the calls after the responses of the first turn. Earlier writes may belong to the start of the service.
fn after_first_turn(trace: &str) -> Vec<&str> {
    let mut before = RESPONSES_PER_TURN;
    let is_skipped = |line: &&str| {
        let is_before = before > 0;
        if line.contains(RESPONSE) {
            before = before.saturating_sub(1);
        }
        is_before
    };
    trace.lines().skip_while(is_skipped).collect()
}

/// Counts the responses. Fails if at one place of the turns more than a quarter came before the log was written and flushed. A background
/// task may have written to the log when a response is sent, but rarely.
fn synced_answers(calls: &[&str]) -> Result<usize> {
    let responses = responses(calls);
    for place in 0..RESPONSES_PER_TURN {
        let of_place = responses.iter().skip(place).step_by(RESPONSES_PER_TURN);
        let (synced, early): (Vec<_>, Vec<_>) = of_place.partition(|(_, is_synced)| *is_synced);
        let turns = early.len() + synced.len();
        if let Some((line, _)) = early.first()
            && early.len() * 4 > turns
        {
            let count = early.len();
            return Err(
                format!("{count} responses before the log was on the disk, first {line}").into(),
            );
        }
    }
    Ok(responses.len())
}

/// Returns the responses, and whether the log was written and flushed since the previous one, and not written after that.
fn responses<'t>(calls: &[&'t str]) -> Vec<(&'t str, bool)> {
    let mut dirty = false;
    let mut flushed = false;
    let mut flushing = BTreeSet::new();
    let mut responses = Vec::new();
    for line in calls {
        let thread = line.split(' ').next().unwrap_or_default();
        let is_log = line.contains("-wal>");
        let flush = line.contains("fdatasync(") || line.contains("fsync(");
        if line.contains("pwrite64(") && is_log {
            dirty = true;
        } else if flush && is_log && line.ends_with("<unfinished ...>") {
            flushing.insert(thread);
        } else if flush && is_log && line.ends_with("= 0")
            || line.contains("sync resumed>") && line.ends_with("= 0") && flushing.remove(thread)
        {
            (dirty, flushed) = (false, true);
        } else if line.contains(RESPONSE) {
            responses.push((*line, flushed && !dirty));
            flushed = false;
        }
    }
    responses
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: &str = "7 pwrite64(9</d/penstock.db-wal>, \"\"..., 4096, 32) = 4096";
    const FLUSH: &str = "7 fdatasync(9</d/penstock.db-wal>) = 0";
    const BEGUN: &str = "7 fdatasync(9</d/penstock.db-wal> <unfinished ...>";
    const RESUMED: &str = "7 <... fdatasync resumed>) = 0";
    const SENT: &str =
        "8 writev(12<TCP:[1]>, [{iov_base=\"HTTP/1.1 200 OK\\r\"..., iov_len=99}], 1) = 99";

    #[test]
    fn response_before_flush_is_detected() {
        assert_eq!(synced_answers(&[WRITE, FLUSH, SENT]).unwrap(), 1);
        assert_eq!(synced_answers(&[WRITE, BEGUN, RESUMED, SENT]).unwrap(), 1);
        assert!(synced_answers(&[WRITE, SENT, FLUSH]).is_err());
        assert!(synced_answers(&[WRITE, BEGUN, SENT, RESUMED]).is_err());
        assert!(synced_answers(&[WRITE, FLUSH, SENT, SENT]).is_err());
        assert!(synced_answers(&[WRITE, FLUSH, WRITE, SENT]).is_err());
    }

    #[test]
    fn write_of_background_task_is_allowed_and_missing_flush_is_not() {
        let turn = [WRITE, FLUSH, SENT].repeat(RESPONSES_PER_TURN);
        let written_once = [[WRITE, FLUSH, WRITE, SENT].as_slice(), &turn[3..]].concat();
        let trace = [written_once, turn.repeat(TURNS - 1)].concat();
        assert_eq!(synced_answers(&trace).unwrap(), RESPONSES);
        let unflushed = [&turn[..turn.len() - 3], &[WRITE, SENT]].concat();
        assert!(synced_answers(&unflushed.repeat(TURNS)).is_err());
    }

    #[test]
    fn calls_of_start_and_first_turn_are_skipped() {
        let start = [WRITE, FLUSH, WRITE];
        let turn = [WRITE, FLUSH, SENT].repeat(5);
        let trace = [start.as_slice(), &turn, &[WRITE, SENT]].concat();
        assert_eq!(after_first_turn(&trace.join("\n")), [WRITE, SENT]);
        assert!(after_first_turn(&turn.join("\n")).is_empty());
    }
}
