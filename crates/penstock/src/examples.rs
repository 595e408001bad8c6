//! The examples at the end of each command's help.

use clap::Command;

/// A command and an example of it. Tests run every example, in this order, on an installation with the partner `acme`.
const EXAMPLES: [(&[&str], &str); 22] = [
    (&["sandbox"], "penstock sandbox"),
    (
        &["sandbox"],
        "penstock sandbox --dir trial --pools-port 5010 --gate-port 5020",
    ),
    (&["sandbox"], "penstock sandbox --check"),
    (&["migrate"], "penstock migrate"),
    (&["apply"], "penstock apply -f acme.toml --dry-run"),
    (&["apply"], "penstock apply -f acme.toml"),
    (
        &["key", "create"],
        "penstock key create --partner acme --kind secret",
    ),
    (&["key", "list"], "penstock key list --partner acme"),
    (
        &["key", "revoke"],
        "penstock key revoke --key-id key_test_01M8A3V0RSE9M6GQF5Z7T2K4XN",
    ),
    (&["clock", "show"], "penstock clock show"),
    (&["clock", "accept"], "penstock clock accept"),
    (&["master-key", "list"], "penstock master-key list"),
    (&["master-key", "add"], "penstock master-key add"),
    (&["master-key", "rotate"], "penstock master-key rotate"),
    (
        &["balance", "credit"],
        "penstock balance credit --partner acme --currency EUR --amount 1000.00 --ref bank-2026-0001",
    ),
    (
        &["crypto", "credit"],
        "penstock crypto credit --partner acme --asset USDT --network tron --amount 500 --ref tx-0001",
    ),
    (
        &["webhook", "rotate-secret"],
        "penstock webhook rotate-secret --partner acme --service pools --overlap 24h",
    ),
    (&["verify"], "penstock verify"),
    (
        &["export", "trades"],
        "penstock export trades --partner acme --from 2026-05-01 --to 2026-06-01",
    ),
    (
        &["export", "ledger"],
        "penstock export ledger --partner acme --from 2026-05-01 --to 2026-06-01",
    ),
    (
        &["export", "payments"],
        "penstock export payments --partner acme --from 2026-05-01 --to 2026-06-01",
    ),
    (&["completions"], "penstock completions zsh"),
];

/// Adds the examples to the help of their commands.
pub(crate) fn add_to(command: Command) -> Command {
    at(command, &mut Vec::new())
}

fn at(command: Command, path: &mut Vec<String>) -> Command {
    let calls: Vec<&str> = EXAMPLES
        .iter()
        .filter(|(of, _)| *of == path.as_slice())
        .map(|(_, call)| *call)
        .collect();
    let command = match calls.as_slice() {
        [] => command,
        calls => command.after_help(format!("Examples:\n  {}", calls.join("\n  "))),
    };
    command.mut_subcommands(|inner| {
        path.push(inner.get_name().to_owned());
        let inner = at(inner, path);
        path.pop();
        inner
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::Arguments;

    fn check(command: &Command) {
        if command.has_subcommands() {
            command.get_subcommands().for_each(check);
        } else {
            let name = command.get_name();
            assert!(command.get_after_help().is_some(), "{name} has no example");
        }
    }

    // rule: cli.help
    #[test]
    fn every_command_has_an_example() {
        check(&add_to(Arguments::command()));
    }
}
