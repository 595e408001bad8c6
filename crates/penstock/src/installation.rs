//! Finding and opening the installation a command works on.

use std::sync::Arc;

use kernel::Mode;
use partner_core::usecases::{keys::Keys, partners};
use partner_core::{PartnerId, Tenant};
use runtime::{Config, OpenedBase, Ports, Sources};

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::terminal::Terminal;

impl InstallationArgs {
    /// Flags, variables and the file, with the flags a command adds.
    pub(crate) fn sources(&self, added: Vec<(&'static str, String)>) -> Sources {
        let mut sources = Sources::of_process(self.config.clone());
        let mut flag = |name, value: &Option<String>| {
            sources.flags.extend(value.clone().map(|text| (name, text)));
        };
        flag("DATABASE_URL", &self.database_url);
        flag("MODE", &self.mode);
        sources.flags.extend(added);
        sources
    }

    /// Reads the configuration, warning people of what may surprise them.
    pub(crate) fn load(
        &self,
        added: Vec<(&'static str, String)>,
        terminal: &Terminal,
    ) -> Result<Config, Failure> {
        let loaded = Config::load(&self.sources(added))?;
        for line in &loaded.warnings {
            terminal.remark(&format!("warning: {line}"));
        }
        Ok(loaded.config)
    }
}

/// An open installation.
pub(crate) struct Installation {
    pub(crate) base: OpenedBase,
    pub(crate) mode: Mode,
}

impl Installation {
    /// Opens the installation that is meant, which has to be there; an embedded database is
    /// migrated.
    pub(crate) async fn open(
        given: &InstallationArgs,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        let config = given.load(Vec::new(), terminal)?;
        let base = OpenedBase::open_existing(config, Ports::of_machine()).await?;
        Ok(Self::on(base))
    }

    /// Opens the installation of a configuration that has been read, made where there is none.
    pub(crate) async fn open_or_make(config: Config) -> Result<Self, Failure> {
        let base = OpenedBase::open(config, Ports::of_machine()).await?;
        Ok(Self::on(base))
    }

    pub(crate) fn on(base: OpenedBase) -> Self {
        let mode = base.config.mode;
        Self { base, mode }
    }

    pub(crate) fn keys(&self) -> Keys {
        Keys {
            store: self.base.store.clone(),
            entropy: Arc::clone(&self.base.entropy),
            mode: self.mode,
        }
    }

    /// The partner of a name, in this mode; refused where there is none.
    pub(crate) async fn tenant(&self, partner: PartnerId) -> Result<Tenant, Failure> {
        let mode = self.mode;
        let who = Tenant { partner, mode };
        match partners::find(&*self.base.store, &who).await? {
            Some(_) => Ok(who),
            None => Err(self.no_partner(&who).await?),
        }
    }

    /// Says where the partner was looked for, and names the one that may be meant.
    async fn no_partner(&self, who: &Tenant) -> Result<Failure, Failure> {
        let Tenant { partner, mode } = who;
        let database = &self.base.config.database;
        let nearest = partners::nearest(&*self.base.store, *mode, partner.as_str()).await?;
        let hint = nearest.map_or_else(
            || "; `penstock apply` creates partners".to_owned(),
            |nearest| format!("; did you mean `{nearest}`?"),
        );
        Ok(Failure::Failed(format!(
            "no partner `{partner}` in mode {mode} of {database}{hint}"
        )))
    }

    /// Waits until everything is written and closed.
    pub(crate) async fn close(self) {
        self.base.store.close().await;
    }
}

/// Reads a partner's name.
pub(crate) fn partner_id(text: &str) -> Result<PartnerId, Failure> {
    PartnerId::parse(text)
        .ok_or_else(|| Failure::input("--partner: expected 1 to 64 of a-z, 0-9, _ and -"))
}
