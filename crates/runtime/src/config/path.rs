//! Checks of a path that a program creates. A wrong path would otherwise become a new, empty database.

use std::net::IpAddr;

use partner_core::text;

/// Characters that a path of a database never needs, with the reason why a configuration contains them, and the remedy.
const UNEXPANDED: [(char, &str); 12] = [
    ('~', "is not expanded; write the path of the home directory"),
    ('$', "does not insert a variable; write its value"),
    ('%', "is not decoded; write the character itself"),
    ('{', "belongs to a template; write its value"),
    ('}', "belongs to a template; write its value"),
    ('<', "belongs to a placeholder; write the path itself"),
    ('>', "belongs to a placeholder; write the path itself"),
    ('"', "belongs to a shell or a file of variables; remove it"),
    ('`', "belongs to a shell or a file of variables; remove it"),
    ('\\', "does not separate folders; write /"),
    ('?', "begins parameters, which a file has not; remove it"),
    ('#', "begins a fragment, which a file has not; remove it"),
];

/// Checks that a path is the path that its author meant: it has no character that another program would have replaced or removed.
///
/// # Errors
/// The reason and the remedy, in one line that shows the character.
pub fn check_path(path: &str) -> Result<(), String> {
    check_visible(path)?;
    for (letter, reason) in UNEXPANDED {
        if path.contains(letter) {
            return Err(format!("`{letter}` in the path {reason}"));
        }
    }
    // A name may have an apostrophe inside.
    if path.starts_with('\'') || path.ends_with('\'') {
        return Err("`'` around the path belongs to a shell; remove it".to_owned());
    }
    let is_padded = |part: &&str| part.trim() != *part;
    match path.split('/').find(is_padded) {
        None => Ok(()),
        Some(part) => Err(format!(
            "the part {part:?} of the path begins or ends with white space; remove it"
        )),
    }
}

/// Checks that a text has no character that its reader does not see.
pub(super) fn check_visible(value: &str) -> Result<(), String> {
    match value.chars().find(|letter| is_invisible(*letter)) {
        None => Ok(()),
        Some(letter) if letter.is_ascii() => Err(invisible(&format!("{letter:?}"))),
        Some(letter) => Err(invisible(&format!("'{}'", letter.escape_unicode()))),
    }
}

fn invisible(letter: &str) -> String {
    format!("the value contains {letter}, which is not visible; remove it")
}

/// Checks that the path of a URL does not begin with a host. A file has no host, so the host would become a folder.
pub(super) fn check_no_host(path: &str) -> Result<(), String> {
    let (first, _) = path.split_once('/').unwrap_or((path, ""));
    let is_host = first.eq_ignore_ascii_case("localhost")
        || first.parse::<IpAddr>().is_ok()
        || first.contains([':', '@', '[']);
    if is_host {
        return Err(format!(
            "a file has no host, but the path begins with `{first}`; write sqlite:///<absolute path> or sqlite://<relative path>"
        ));
    }
    Ok(())
}

/// Whether a reader does not see the character, or takes it for a space.
fn is_invisible(letter: char) -> bool {
    let is_other_space = letter.is_whitespace() && letter != ' ';
    is_other_space || text::check(letter.encode_utf8(&mut [0; 4])).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: config.database-path
    #[test]
    fn path_is_refused_for_what_others_replace_or_hide() {
        for good in [
            "penstock-data/penstock.db",
            "/var/lib/penstock/penstock.db",
            "./a b/ü/u\u{308}/o'neil/店.db",
            "../x/.hidden/a-b_c+d=e,f;g@h:1.db",
            "localhost/x.db",
        ] {
            assert_eq!(check_path(good), Ok(()), "{good}");
        }
        for (bad, shown) in [
            ("~/penstock.db", "`~`"),
            ("/srv/a~/penstock.db", "`~`"),
            ("$HOME/penstock.db", "`$`"),
            ("${HOME}/penstock.db", "`$`"),
            ("/srv/my%20data/penstock.db", "`%`"),
            ("{{ path }}/penstock.db", "`{`"),
            ("<file>", "`<`"),
            ("/srv/penstock.db\"", "`\"`"),
            ("/srv/`hostname`/penstock.db", "```"),
            ("/srv/penstock.db?mode=ro", "`?`"),
            ("/srv/a#1/penstock.db", "`#`"),
            ("'/srv/penstock.db'", "`'`"),
            ("/srv/penstock.db'", "`'`"),
            ("C:\\data\\penstock.db", "`\\`"),
            ("/srv/penstock.db\n", "'\\n'"),
            ("/srv/pen\tstock.db", "'\\t'"),
            ("/srv/\0penstock.db", "'\\0'"),
            ("\u{202a}/srv/penstock.db", "'\\u{202a}'"),
            ("/srv/penstock.db\u{200b}", "'\\u{200b}'"),
            ("/srv/\u{feff}penstock.db", "'\\u{feff}'"),
            ("/srv/pen\u{a0}stock.db", "'\\u{a0}'"),
            ("/srv/penstock.db\u{fe0f}", "'\\u{fe0f}'"),
            ("/srv/pen\u{34f}stock.db", "'\\u{34f}'"),
            ("/srv/penstock.db\u{115f}", "'\\u{115f}'"),
            ("/srv/penstock.db\u{3164}", "'\\u{3164}'"),
            (" /srv/penstock.db", "\" \""),
            ("/srv /penstock.db", "\"srv \""),
        ] {
            let why = check_path(bad).unwrap_err();
            assert!(why.contains(shown), "{bad:?}: {why}");
            assert!(!why.contains('\n'), "{why:?}");
        }
    }

    // rule: config.database-path
    #[test]
    fn path_that_begins_with_a_host_is_refused() {
        for bad in [
            "localhost/penstock.db",
            "LOCALHOST",
            "127.0.0.1/penstock.db",
            "[::1]/penstock.db",
            "host:5432/penstock.db",
            "user@host/penstock.db",
            "C:/penstock.db",
        ] {
            assert!(check_no_host(bad).is_err(), "{bad}");
        }
        for good in [
            "data/localhost/x.db",
            "/localhost/x.db",
            "./a:b/x.db",
            "x.db",
        ] {
            assert_eq!(check_no_host(good), Ok(()), "{good}");
        }
    }
}
