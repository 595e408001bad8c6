//! The sources of settings: the command line, the environment, a file, and the table's defaults, in this order.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use kernel::Mode;
use partner_core::tables;

use super::setting::{self, AnySetting, Default, Setting};
use super::value::InvalidSetting;

const PREFIX: &str = "PENSTOCK_";
/// Minimum similarity of a name that is suggested.
const SUGGESTION_SIMILARITY: f64 = 0.8;
/// Maximum characters of a wrong value that an error repeats.
const MAX_SHOWN_CHARS: usize = 60;

/// The raw settings of a run of a program.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Settings of the command line, by the name of their variable without the prefix.
    pub flags: Vec<(&'static str, String)>,
    pub environment: Vec<(OsString, OsString)>,
    /// The file of `--config`.
    pub file: Option<PathBuf>,
}

impl Sources {
    /// The process's environment and an optional file.
    #[must_use]
    pub fn of_process(file: Option<PathBuf>) -> Self {
        Self {
            flags: Vec::new(),
            environment: std::env::vars_os().collect(),
            file,
        }
    }
}

/// An error of the configuration: the setting and the expected form, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The setting as the operator knows it, such as `PENSTOCK_QUOTE_TTL`.
    pub setting: String,
    pub expected: String,
}

impl ConfigError {
    pub(crate) fn new(setting: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            setting: setting.into(),
            expected: expected.into(),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.expected)
    }
}

impl std::error::Error for ConfigError {}

/// The raw texts by setting. Every text has the form that its setting expects.
#[derive(Debug)]
pub(super) struct RawSettings {
    texts: BTreeMap<&'static str, (String, Origin)>,
    mode: Mode,
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    Flag,
    Environment,
    File(String),
}

impl RawSettings {
    /// Collects the raw texts and validates each of them alone. The second part contains warnings.
    pub(super) fn collect(sources: &Sources) -> Result<(Self, Vec<String>), Vec<ConfigError>> {
        let mut collected = Collected::default();
        if let Some(path) = &sources.file {
            collected.take_file(path);
        }
        collected.take_environment(&sources.environment);
        for (name, text) in &sources.flags {
            collected.take(name, text, Origin::Flag);
        }
        collected.check()
    }

    pub(super) const fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether the operator set a value.
    pub(super) fn is_set(&self, setting: &dyn AnySetting) -> bool {
        self.texts.contains_key(setting.about().name)
    }

    /// The effective text of a setting; `None` if the setting is unset.
    pub(super) fn text(&self, setting: &dyn AnySetting) -> Option<&str> {
        if let Some((text, _)) = self.texts.get(setting.about().name) {
            return Some(text);
        }
        match (setting.about().default, self.mode) {
            (Default::Unset, _) => None,
            (Default::Is(text), _)
            | (Default::ByMode(text, _), Mode::Test)
            | (Default::ByMode(_, text), Mode::Live) => Some(text),
            (Default::SameAs(other), _) => self.text(setting::find(other)?),
        }
    }

    /// The effective value of a setting that may be unset.
    pub(super) fn get<T>(&self, setting: &Setting<T>) -> Result<Option<T>, ConfigError> {
        let read = |text: &str| {
            let value = setting.parse(text);
            value.map_err(|unread| self.error(setting, unread))
        };
        self.text(setting).map(read).transpose()
    }

    /// The effective value of a setting that has a default.
    pub(super) fn value<T>(&self, setting: &Setting<T>) -> Result<T, ConfigError> {
        let unset = || self.error(setting, InvalidSetting::Form);
        self.get(setting)?.ok_or_else(unset)
    }

    /// An error of a setting in combination with other settings.
    pub(super) fn refuse(&self, setting: &dyn AnySetting, expected: &str) -> ConfigError {
        let given = self.texts.get(setting.about().name);
        ConfigError::new(label(setting, given.map(|(_, origin)| origin)), expected)
    }

    fn error(&self, setting: &dyn AnySetting, unread: InvalidSetting) -> ConfigError {
        let given = self.texts.get(setting.about().name);
        let text = given.map_or("", |(text, _)| text);
        self.refuse(setting, &explain(setting, unread, text))
    }
}

/// The texts that were collected so far, with their errors.
#[derive(Default)]
struct Collected {
    texts: BTreeMap<&'static str, (String, Origin)>,
    faults: Vec<ConfigError>,
    warnings: Vec<String>,
}

impl Collected {
    /// Removes white space at either end: `echo` adds a line end, and a copied text has spaces. Keeps a text of white space alone,
    /// so that it is an error instead of the default.
    fn take(&mut self, name: &'static str, text: &str, origin: Origin) {
        let trimmed = text.trim();
        let text = if trimmed.is_empty() { text } else { trimmed };
        self.texts.insert(name, (text.to_owned(), origin));
    }

    /// An empty variable counts as absent, because container files cannot leave a variable out.
    fn take_environment(&mut self, environment: &[(OsString, OsString)]) {
        for (name, text) in environment {
            let Some(short) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
                continue;
            };
            let Some(setting) = setting::find(short) else {
                let hint = nearest(short).map(|near| format!("; the nearest is {PREFIX}{near}"));
                self.warnings.push(format!(
                    "{PREFIX}{short} is not a variable of Penstock{}",
                    hint.unwrap_or_default()
                ));
                continue;
            };
            match text.to_str() {
                Some("") => {}
                Some(text) => self.take(setting.about().name, text, Origin::Environment),
                None => self.faults.push(ConfigError::new(
                    label(setting, None),
                    format!("expected {}, in UTF-8", setting.about().expected),
                )),
            }
        }
    }

    fn take_file(&mut self, path: &Path) {
        let file = path.display().to_string();
        let error = |expected: String| ConfigError::new(file.clone(), expected);
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(unread) => {
                let expected = format!("expected a readable TOML file ({unread})");
                return self.faults.push(error(expected));
            }
        };
        let table: toml::Table = match toml::from_str(&text) {
            Ok(table) => table,
            Err(unread) => {
                let at = unread.span().map_or(0, |span| span.start);
                let line = text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
                let message = tables::broken_syntax(&text, at, unread.message());
                return self.faults.push(error(format!("line {line}: {message}")));
            }
        };
        for (key, value) in &table {
            let known = setting::find(&key.to_uppercase());
            let Some(setting) = known.filter(|_| key.to_lowercase() == *key) else {
                let hint = nearest(&key.to_uppercase()).map(str::to_lowercase);
                let hint = hint.map(|near| format!("; the nearest is `{near}`"));
                let hint = hint.unwrap_or_default();
                self.faults
                    .push(error(format!("unknown key `{key}`{hint}")));
                continue;
            };
            let origin = Origin::File(file.clone());
            match written(value) {
                Some(text) => self.take(setting.about().name, &text, origin),
                None => self.faults.push(ConfigError::new(
                    label(setting, Some(&origin)),
                    format!("expected {}, as a string", setting.about().expected),
                )),
            }
        }
    }

    fn check(mut self) -> Result<(RawSettings, Vec<String>), Vec<ConfigError>> {
        for setting in setting::ALL {
            let Some((text, origin)) = self.texts.get(setting.about().name) else {
                continue;
            };
            let checked = check_controls(*setting, text)
                .and_then(|()| check_quotes(*setting, text))
                .and_then(|()| setting.check(text));
            if let Err(unread) = checked {
                self.faults.push(ConfigError::new(
                    label(*setting, Some(origin)),
                    explain(*setting, unread, text),
                ));
            }
        }
        if !self.faults.is_empty() {
            return Err(self.faults);
        }
        let mode = self
            .texts
            .get("MODE")
            .and_then(|(text, _)| Mode::parse(text));
        let given = RawSettings {
            texts: self.texts,
            mode: mode.unwrap_or(Mode::Test),
        };
        Ok((given, self.warnings))
    }
}

/// Refuses control characters, which some parsers of URLs remove without an error. Only master keys may be on several lines.
fn check_controls(setting: &dyn AnySetting, text: &str) -> Result<(), InvalidSetting> {
    let may_have_lines = setting.about().name == setting::MASTER_KEY.about().name;
    match text.chars().find(|letter| letter.is_control()) {
        Some(letter) if !may_have_lines => Err(InvalidSetting::Because(format!(
            "expected {}, without the control character {letter:?}",
            setting.about().expected
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Refuses quotes around a value, which a shell removes and some readers of files of variables keep.
fn check_quotes(setting: &dyn AnySetting, text: &str) -> Result<(), InvalidSetting> {
    let is_quoted =
        |quote: char| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    match ['"', '\''].into_iter().find(|quote| is_quoted(*quote)) {
        None => Ok(()),
        Some(quote) => Err(InvalidSetting::Because(format!(
            "expected {}, without the {quote} at both ends",
            setting.about().expected
        ))),
    }
}

/// A value of the file in the form of an environment variable.
fn written(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Array(items) => {
            let items: Option<Vec<&str>> = items.iter().map(toml::Value::as_str).collect();
            items.map(|items| items.join(","))
        }
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

/// The setting's name in the form that the operator used.
fn label(setting: &dyn AnySetting, origin: Option<&Origin>) -> String {
    let name = setting.about().name;
    match origin {
        Some(Origin::Flag) => format!("--{}", name.to_lowercase().replace('_', "-")),
        Some(Origin::File(file)) => {
            format!("{PREFIX}{name} ({} in {file})", name.to_lowercase())
        }
        Some(Origin::Environment) | None => format!("{PREFIX}{name}"),
    }
}

/// The expected form. Repeats the value unless the value may contain a secret.
fn explain(setting: &dyn AnySetting, unread: InvalidSetting, text: &str) -> String {
    let expected = match unread {
        InvalidSetting::Because(reason) => return reason,
        InvalidSetting::Credentials => {
            return format!(
                "expected http:<url> without credentials and query: its secret belongs in {PREFIX}{}_SECRET",
                setting.about().name
            );
        }
        InvalidSetting::Form => setting.about().expected,
    };
    match setting.about().shown {
        setting::Visibility::Plainly => {
            let repeated: String = text.chars().take(MAX_SHOWN_CHARS).collect();
            format!("expected {expected}, got {repeated:?}")
        }
        setting::Visibility::WithoutCredentials | setting::Visibility::Masked => {
            format!("expected {expected}")
        }
    }
}

/// The known setting that is most similar to an unknown name.
fn nearest(name: &str) -> Option<&'static str> {
    nearest_of(
        name,
        setting::ALL.iter().map(|setting| setting.about().name),
    )
}

/// The known name that is most similar to an unknown name.
pub(crate) fn nearest_of(
    name: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    let likeness = |known: &str| strsim::jaro_winkler(name, known);
    known
        .into_iter()
        .map(|known| (likeness(known), known))
        .filter(|(alike, _)| *alike >= SUGGESTION_SIMILARITY)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, known)| known)
}
