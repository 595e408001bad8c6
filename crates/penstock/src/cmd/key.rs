//! `penstock key`: creates, lists and revokes API keys.

use std::process::ExitCode;

use kernel::{Bound, Timestamp};
use partner_core::key::{KeyId, KeyKind, KeyTerms, LABEL_LENGTH};
use partner_core::tables::is_label;
use partner_core::text;
use partner_core::usecases::keys::{KeysError, ListedKey};
use secrecy::ExposeSecret as _;
use serde::Serialize;

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::installation::{Installation, partner_id};
use crate::terminal::Terminal;

/// The commands for keys.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum KeyArgs {
    /// Creates a key and prints it once
    Create {
        /// Partner that owns the key
        #[arg(long)]
        partner: String,
        /// Kind of the key
        #[arg(long, value_enum)]
        kind: Kind,
        /// Label, 1 to 64 characters
        #[arg(long)]
        label: Option<String>,
        /// Instant from which the key is refused, such as 2027-01-31T00:00:00Z
        #[arg(long, value_name = "INSTANT")]
        expires: Option<String>,
    },
    /// Lists a partner's keys, oldest first, with revoked keys
    List {
        /// Partner that owns the keys
        #[arg(long)]
        partner: String,
    },
    /// Revokes a key for good
    Revoke {
        /// Id of the key, as `list` shows it
        #[arg(long)]
        key_id: String,
    },
}

/// What a key permits.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Every call; only for servers
    Secret,
    /// Discovery calls
    Publishable,
}

pub(crate) async fn run(
    given: InstallationArgs,
    command: KeyArgs,
    terminal: &Terminal,
) -> Result<ExitCode, Failure> {
    match command {
        KeyArgs::Create {
            partner,
            kind,
            label,
            expires,
        } => {
            let terms = terms(label, expires.as_deref())?;
            create(&given, &partner, kind, &terms, terminal).await?;
        }
        KeyArgs::List { partner } => list(&given, &partner, terminal).await?,
        KeyArgs::Revoke { key_id } => revoke(&given, &key_id, terminal).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn terms(label: Option<String>, expires: Option<&str>) -> Result<KeyTerms, Failure> {
    if let Some(label) = &label {
        let form = format!("--label: expected 1 to {LABEL_LENGTH} printable characters");
        text::check(label).map_err(|refused| {
            Failure::input(format!(
                "{form}, found {refused}; type it without this character"
            ))
        })?;
        if !is_label(label, LABEL_LENGTH) {
            return Err(Failure::input(format!(
                "{form} without a space at either end"
            )));
        }
    }
    let expires_at = expires.map(|text| Timestamp::parse(text, Bound::Upper));
    let expires_at = expires_at.transpose();
    let expires_at = expires_at.map_err(|error| Failure::input(format!("--expires: {error}")))?;
    Ok(KeyTerms { label, expires_at })
}

async fn create(
    given: &InstallationArgs,
    partner: &str,
    kind: Kind,
    terms: &KeyTerms,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let partner = partner_id(partner)?;
    let kind = match kind {
        Kind::Secret => KeyKind::Secret,
        Kind::Publishable => KeyKind::Publishable,
    };
    let installation = Installation::open_to_write(given, terminal).await?;
    installation.tenant(partner.clone()).await?;
    let (record, text) = installation.keys().create(&partner, kind, terms).await?;
    let address = installation.base.config.pools_listen;
    installation.close().await;
    let created = Created {
        id: record.id.to_string(),
        kind: kind.as_str(),
        key: text.expose_secret(),
        label: record.label,
        expires_at: record.expires_at.map(|at| at.to_string()),
    };
    let text = || {
        let label = created.label.as_deref();
        let label = label.map(|label| format!(" {label:?}")).unwrap_or_default();
        let expires = created.expires_at.as_deref();
        let expires = expires.map(|at| format!("the key expires {at}\n"));
        format!(
            "{} key {}{label} of {partner}, shown only once: {}\n{}running services accept it at once; next: curl -s http://{address}/v1/pools -H 'Authorization: Bearer <the key>'",
            created.kind,
            created.id,
            created.key,
            expires.unwrap_or_default()
        )
    };
    let remedy = || {
        let id = &created.id;
        format!(
            "key {id} was created but could not be printed: `penstock key revoke --key-id {id}`, then create another key"
        )
    };
    terminal.answer_once(&created, text, remedy)
}

async fn list(given: &InstallationArgs, partner: &str, terminal: &Terminal) -> Result<(), Failure> {
    let partner = partner_id(partner)?;
    let installation = Installation::open_to_read(given, terminal).await?;
    installation.tenant(partner.clone()).await?;
    let records = installation.keys().list(&partner).await?;
    installation.close().await;
    let rows: Vec<Row> = records.iter().map(Row::of).collect();
    terminal.answer(&rows, || table(&rows))
}

async fn revoke(
    given: &InstallationArgs,
    key_id: &str,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let id = KeyId::parse(key_id).ok_or_else(|| {
        Failure::input("--key-id: expected an id such as key_test_01HF7YAT00408104G208104081")
    })?;
    let installation = Installation::open_to_write(given, terminal).await?;
    let revoked = installation.keys().revoke(id).await?;
    installation.close().await;
    let answer = Revoked {
        id: revoked.id.to_string(),
        revoked_at: revoked.revoked_at.to_string(),
    };
    terminal.answer(&answer, || {
        format!(
            "key {} of {} was revoked at {}; running services refuse it within 5 seconds",
            answer.id, revoked.partner, answer.revoked_at
        )
    })
}

#[derive(Serialize)]
struct Created<'k> {
    id: String,
    kind: &'static str,
    key: &'k str,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

#[derive(Serialize)]
struct Row {
    id: String,
    kind: &'static str,
    prefix: String,
    last4: String,
    key: Option<String>,
    created_at: String,
    revoked_at: Option<String>,
    label: Option<String>,
    expires_at: Option<String>,
    last_used_at: Option<String>,
}

#[derive(Serialize)]
struct Revoked {
    id: String,
    revoked_at: String,
}

impl Row {
    fn of(listed: &ListedKey) -> Self {
        let record = &listed.record;
        let text = |instant: Option<Timestamp>| instant.map(|at| at.to_string());
        Self {
            id: record.id.to_string(),
            kind: record.kind.as_str(),
            prefix: record.prefix.clone(),
            last4: record.last4.clone(),
            key: listed.text.clone(),
            created_at: record.created_at.to_string(),
            revoked_at: text(record.revoked_at),
            label: record.label.clone(),
            expires_at: text(record.expires_at),
            last_used_at: text(listed.last_used),
        }
    }
}

fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no keys; next: penstock key create --partner … --kind secret".to_owned();
    }
    let line = |row: &Row| {
        let state = match (&row.revoked_at, &row.expires_at) {
            (Some(at), _) => format!("revoked {at}"),
            (None, Some(at)) => format!("expires {at}"),
            (None, None) => "active".to_owned(),
        };
        let used = match &row.last_used_at {
            Some(at) => format!("used {at}"),
            None => "never used".to_owned(),
        };
        let shown = match &row.key {
            Some(key) => key.clone(),
            None => format!("{}…{}", row.prefix, row.last4),
        };
        let label = row.label.as_deref().map(|label| format!("  {label:?}"));
        format!(
            "{}  {:<11}  {shown}  created {}  {state}  {used}{}",
            row.id,
            row.kind,
            row.created_at,
            label.unwrap_or_default()
        )
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

impl From<KeysError> for Failure {
    fn from(error: KeysError) -> Self {
        match error {
            KeysError::UnknownPartner(..) => Self::Failed(error.to_string()),
            KeysError::UnknownKey(id, mode) if id.mode() != mode => {
                Self::Failed(format!("{error}; try --mode {}", id.mode()))
            }
            KeysError::UnknownKey(..) => Self::Failed(error.to_string()),
            KeysError::Expired(_) => Self::input(format!("--expires: {error}")),
            KeysError::Store(error) => error.into(),
        }
    }
}
