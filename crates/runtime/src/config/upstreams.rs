//! The settings of the upstreams that hold obligations: the engine, the rail and the verifier, each with a former one that is still asked
//! about its own.

use kernel::UpstreamName;
use providers::{UpstreamSecret, UpstreamUrl};

use super::Config;
use super::setting::{self, About, AnySetting as _, Setting};
use super::source::{ConfigError, RawSettings};
use super::value::UpstreamChoice;

/// An upstream as it is configured.
#[derive(Debug)]
pub struct UpstreamConfig {
    pub choice: UpstreamChoice,
    pub secret: Option<UpstreamSecret>,
    /// The name of an upstream over HTTP; `None` for that of its URL.
    pub name: Option<UpstreamName>,
}

/// The settings of an upstream.
pub(super) struct UpstreamSettings {
    /// What it is.
    kind: &'static str,
    pub(super) setting: &'static Setting<UpstreamChoice>,
    secret: &'static Setting<UpstreamSecret>,
    name: &'static Setting<UpstreamName>,
    /// A value that mode live permits without TLS.
    private: &'static str,
    of: fn(&Config) -> &UpstreamConfig,
}

macro_rules! upstreams {
    ($($constant:ident, $field:ident: $kind:literal, $secret:ident, $name:ident, $private:literal;)+) => {
        $(pub(super) static $constant: UpstreamSettings = UpstreamSettings {
            kind: $kind,
            setting: &setting::$constant,
            secret: &setting::$secret,
            name: &setting::$name,
            private: $private,
            of: |config| &config.$field,
        };)+

        /// Every upstream. The former one of a kind follows the present one.
        pub(super) static UPSTREAMS: &[&UpstreamSettings] = &[$(&$constant),+];
    };
}

upstreams! {
    ENGINE, engine: "engine", ENGINE_SECRET, ENGINE_NAME, "http:http://10.0.0.5:9000";
    ENGINE_FORMER, engine_former: "engine", ENGINE_FORMER_SECRET, ENGINE_FORMER_NAME, "http:http://10.0.0.5:9001";
    RAIL, rail: "rail", RAIL_SECRET, RAIL_NAME, "http:http://10.0.0.6:9100";
    RAIL_FORMER, rail_former: "rail", RAIL_FORMER_SECRET, RAIL_FORMER_NAME, "http:http://10.0.0.6:9101";
    VERIFIER, verifier: "verifier", VERIFIER_SECRET, VERIFIER_NAME, "http:http://10.0.0.7:9200";
    VERIFIER_FORMER, verifier_former: "verifier", VERIFIER_FORMER_SECRET, VERIFIER_FORMER_NAME, "http:http://10.0.0.7:9201";
}

/// The names of upstreams that Penstock brings along. One over HTTP has another name, so that none of them ever answers for it.
const BUILT_IN: [&str; 2] = ["sandbox", "none"];
/// The name of rows from before the names. Only a former upstream has it.
const UNNAMED: &str = "unnamed";

impl UpstreamSettings {
    pub(super) fn read(&self, given: &RawSettings) -> Result<UpstreamConfig, ConfigError> {
        Ok(UpstreamConfig {
            choice: given.value(self.setting)?,
            secret: given.get(self.secret)?,
            name: given.get(self.name)?,
        })
    }

    /// The error of mode live in the URL.
    pub(super) fn live_error(&self, given: &RawSettings) -> Option<ConfigError> {
        let Ok(UpstreamChoice::Http(url)) = given.value(self.setting) else {
            return None;
        };
        let expected = format!(
            "expected http:https://<host>: mode live permits plain http only if the URL contains a loopback or private IP address, such as {}",
            self.private
        );
        is_exposed(&url).then(|| given.refuse(self.setting, &expected))
    }

    /// The error of an upstream over HTTP without a secret.
    pub(super) fn missing_secret(&self, config: &Config) -> Option<ConfigError> {
        let UpstreamConfig { choice, secret, .. } = (self.of)(config);
        if !matches!(choice, UpstreamChoice::Http(_)) || secret.is_some() {
            return None;
        }
        let About { name, expected, .. } = self.secret.about();
        let kind = self.kind;
        let expected = format!(
            "expected {expected}: mode live requires a secret that authenticates Penstock to the {kind}"
        );
        Some(ConfigError::new(format!("PENSTOCK_{name}"), expected))
    }

    /// The name that its obligations record. `None` without an upstream, or if a setting is invalid, which has an error of its own.
    fn recorded(&self, given: &RawSettings) -> Option<String> {
        match given.value(self.setting).ok()? {
            UpstreamChoice::None => None,
            UpstreamChoice::Sandbox => Some(BUILT_IN[0].to_owned()),
            UpstreamChoice::Http(url) => match given.text(self.name) {
                Some(name) => Some(name.to_owned()),
                None if self.kind == ENGINE.kind => Some(url.name().to_string()),
                None => Some(url.place().to_string()),
            },
        }
    }
}

/// Whether requests to the URL may cross a public network unencrypted.
fn is_exposed(url: &UpstreamUrl) -> bool {
    !url.is_encrypted() && !url.is_private()
}

/// The errors of names that another upstream has. Obligations are found by the name alone.
pub(super) fn name_errors(given: &RawSettings) -> Vec<ConfigError> {
    let mut faults = Vec::new();
    for pair in UPSTREAMS.chunks(2) {
        let [present, former] = pair else { continue };
        let [first, second] = BUILT_IN;
        faults.extend(taken_error(given, present, &[first, second, UNNAMED]));
        faults.extend(taken_error(given, former, &BUILT_IN));
        faults.extend(former_error(given, present, former));
    }
    faults
}

/// The error of a name that Penstock itself gives.
fn taken_error(
    given: &RawSettings,
    upstream: &UpstreamSettings,
    taken: &[&str],
) -> Option<ConfigError> {
    let name = given
        .text(upstream.name)
        .filter(|name| taken.contains(name))?;
    let kind = upstream.kind;
    let expected = format!(
        "expected a name that is not taken: Penstock itself gives the name `{name}`; name the {kind} otherwise"
    );
    Some(given.refuse(upstream.name, &expected))
}

/// The error of a former upstream that has the name of the present one.
fn former_error(
    given: &RawSettings,
    present: &UpstreamSettings,
    former: &UpstreamSettings,
) -> Option<ConfigError> {
    let (name, kind) = (former.recorded(given)?, former.kind);
    if present.recorded(given).as_ref() != Some(&name) {
        return None;
    }
    let of_present = present.setting.about().name;
    if given.value(present.setting).ok() == given.value(former.setting).ok() {
        let expected = format!(
            "expected another {kind} than PENSTOCK_{of_present}: a former {kind} is one that new obligations no longer go to; remove the setting"
        );
        return Some(given.refuse(former.setting, &expected));
    }
    let named = if given.text(former.name).is_some() {
        former.name
    } else {
        present.name
    };
    let expected = format!(
        "expected a name that no other {kind} has: {name} is the name of PENSTOCK_{of_present} and of PENSTOCK_{}, which have different URLs",
        former.setting.about().name
    );
    Some(given.refuse(named, &expected))
}

/// The errors of secrets that equal one of another kind of upstream before them. Each upstream knows its secret, and could use it at the
/// other.
pub(super) fn shared_secrets(given: &RawSettings) -> impl Iterator<Item = ConfigError> {
    let secrets = UPSTREAMS.iter().enumerate();
    secrets.filter_map(move |(number, upstream)| {
        let secret = given.text(upstream.secret)?;
        let mut before = UPSTREAMS.iter().take(number);
        let same = before.find(|earlier| {
            earlier.kind != upstream.kind && given.text(earlier.secret) == Some(secret)
        })?;
        let expected = format!(
            "expected another secret than that of PENSTOCK_{}: the {} and the {} could call each other as Penstock does; create one with \
             `openssl rand -hex 32`",
            same.secret.about().name,
            same.kind,
            upstream.kind
        );
        Some(given.refuse(upstream.secret, &expected))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{DATABASE, KEY, environment};
    use crate::config::{Config, ConfigError};

    const A: &str = "http:https://a.example/desk";
    const B: &str = "http:https://b.example:8443";

    fn refusal(pairs: &[(&str, &str)]) -> Option<String> {
        let faults = Config::load(&environment(pairs)).err()?;
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults.first().map(ConfigError::to_string)
    }

    // rule: config.upstream-names, config.former-upstreams, rail.name, verifier.name
    #[test]
    fn name_that_another_upstream_has_is_refused() {
        for (kind, derived) in [
            ("ENGINE", "https://b.example:8443"),
            ("RAIL", "b.example:8443"),
            ("VERIFIER", "b.example:8443"),
        ] {
            let [name, former, former_name] =
                ["NAME", "FORMER", "FORMER_NAME"].map(|end| format!("{kind}_{end}"));
            let both = [(kind, A), (&former, B)];
            let with = |setting: &str, text: &str| {
                refusal(&[both[0], both[1], (setting, text)]).unwrap_or_default()
            };
            assert_eq!(refusal(&both), None);
            assert!(with(&name, derived).starts_with(&format!("PENSTOCK_{name}: expected a name")));
            for built_in in ["sandbox", "none"] {
                let line = with(&name, built_in);
                assert!(
                    line.starts_with(&format!("PENSTOCK_{name}: expected")),
                    "{line}"
                );
                let line = with(&former_name, built_in);
                assert!(
                    line.starts_with(&format!("PENSTOCK_{former_name}: expected")),
                    "{line}"
                );
            }
            let same = refusal(&[(kind, A), (&former, A)]).unwrap();
            assert!(
                same.starts_with(&format!("PENSTOCK_{former}: expected another")),
                "{same}"
            );
            let taken = refusal(&[(kind, A), (&former, B), (&name, "x"), (&former_name, "x")]);
            let taken = taken.unwrap();
            assert!(
                taken.starts_with(&format!("PENSTOCK_{former_name}: expected")),
                "{taken}"
            );
            let unnamed = with(&name, "unnamed");
            assert!(
                unnamed.starts_with(&format!("PENSTOCK_{name}: expected")),
                "{unnamed}"
            );
            assert_eq!(with(&former_name, "unnamed"), "");
            // An upstream that got another name is its own former one.
            assert_eq!(refusal(&[(kind, A), (&name, "x"), (&former, A)]), None);
            assert_eq!(refusal(&[(kind, "none"), (&former, A)]), None);
            assert_eq!(refusal(&[(kind, A), (&former, "sandbox")]), None);
            let sandbox = refusal(&[(kind, "sandbox"), (&former, "sandbox")]);
            assert!(sandbox.is_some());
        }
    }

    // rule: config.live-secrets-differ, config.former-upstreams
    #[test]
    fn former_upstream_may_share_the_secret_of_its_successor_alone() {
        const SECRET: &str = "hunter2-hunter2-hunter2";
        let live = |more: &[(&str, &str)]| {
            let pairs = [&[("MODE", "live"), ("MASTER_KEY", KEY), DATABASE], more].concat();
            refusal(&pairs)
        };
        let rail = [("RAIL_SECRET", SECRET), ("RAIL_FORMER_SECRET", SECRET)];
        assert_eq!(live(&rail), None);
        let line = live(&[("ENGINE_SECRET", SECRET), rail[1]]).unwrap();
        assert!(line.starts_with("PENSTOCK_RAIL_FORMER_SECRET: expected another secret"));
        assert!(!line.contains(SECRET));
        let exposed = live(&[("RAIL_FORMER", "http:http://a.example"), rail[1]]).unwrap();
        assert!(exposed.starts_with("PENSTOCK_RAIL_FORMER: expected http:https://"));
        let sandbox = live(&[("VERIFIER_FORMER", "sandbox")]).unwrap();
        assert!(
            sandbox.starts_with("PENSTOCK_VERIFIER_FORMER: "),
            "{sandbox}"
        );
    }
}
