//! Finds and opens the installation that a command works on.
//!
//! The mode that the database names is the mode of a command, unless the operator sets one. A command that writes first prints the mode
//! and the database.

use std::sync::Arc;

use kernel::Mode;
use partner_core::usecases::{keys::Keys, partners};
use partner_core::{PartnerId, Tenant};
use runtime::{Access, Config, Loaded, OpenedBase, Ports, Sources, store};

use crate::arguments::InstallationArgs;
use crate::failure::Failure;
use crate::terminal::Terminal;

impl InstallationArgs {
    /// The sources of settings: flags, variables and the file, with the flags that a command adds.
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

    /// Loads the configuration, and prints its warnings for people. If no mode is set, it is that of the database.
    pub(crate) async fn load(&self, terminal: &Terminal) -> Result<Config, Failure> {
        let mut sources = self.sources(Vec::new());
        let mut loaded = Config::load(&sources)?;
        if !loaded.config.is_mode_set {
            let database = &loaded.config.database;
            if let Some(mode) = store::stored_mode(&loaded.config, database).await? {
                sources.flags.push(("MODE", mode.as_str().to_owned()));
                loaded = Config::load(&sources)?;
            }
        }
        let mut config = warned(loaded, terminal);
        config.database = config.database.behind_links();
        Ok(config)
    }

    /// Loads the configuration as the operator has set it, without a look at the database.
    pub(crate) fn load_as_set(&self, terminal: &Terminal) -> Result<Config, Failure> {
        let loaded = Config::load(&self.sources(Vec::new()))?;
        Ok(warned(loaded, terminal))
    }
}

/// Prints the warnings of a configuration.
fn warned(loaded: Loaded, terminal: &Terminal) -> Config {
    for line in &loaded.warnings {
        terminal.remark(&format!("warning: {line}"));
    }
    loaded.config
}

pub(crate) struct Installation {
    pub(crate) base: OpenedBase,
    pub(crate) mode: Mode,
}

impl Installation {
    /// Opens the configured installation, which must exist, for reading. Migrates an embedded database.
    pub(crate) async fn open_to_read(
        given: &InstallationArgs,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        let config = given.load(terminal).await?;
        let opening = OpenedBase::open_existing(config, Ports::of_machine(), Access::Read);
        Ok(Self::on(opening.await?))
    }

    /// Opens the configured installation, which must exist, for writing, and prints which it is. Migrates an embedded database.
    pub(crate) async fn open_to_write(
        given: &InstallationArgs,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        let config = given.load(terminal).await?;
        let opening = OpenedBase::open_existing(config, Ports::of_machine(), Access::Write);
        let installation = Self::on(opening.await?);
        terminal.name_installation(installation.mode, &installation.base.config.database);
        Ok(installation)
    }

    /// Opens the installation of a loaded configuration, and creates a missing embedded database.
    pub(crate) async fn open_or_make(config: Config, access: Access) -> Result<Self, Failure> {
        let base = OpenedBase::open_for(config, Ports::of_machine(), access).await?;
        Ok(Self::on(base))
    }

    /// The mode and the database, for people.
    pub(crate) fn place(&self) -> String {
        format!("{}, {}", self.mode, self.base.config.database)
    }

    pub(crate) fn on(base: OpenedBase) -> Self {
        let mode = base.config.mode;
        Self { base, mode }
    }

    pub(crate) fn keys(&self) -> Keys {
        Keys {
            store: self.base.store.clone(),
            sealer: Arc::clone(&self.base.sealer),
            entropy: Arc::clone(&self.base.entropy),
            mode: self.mode,
        }
    }

    /// The tenant of a partner in this mode. Fails if the partner is unknown.
    pub(crate) async fn tenant(&self, partner: PartnerId) -> Result<Tenant, Failure> {
        let mode = self.mode;
        let who = Tenant { partner, mode };
        match self.base.store.partner_find(&who).await? {
            Some(_) => Ok(who),
            None => Err(self.no_partner(&who).await?),
        }
    }

    /// The failure for an unknown partner. It names the database and the most similar partner.
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

    /// Closes the store after its writes have ended.
    pub(crate) async fn close(self) {
        self.base.store.close().await;
    }
}

pub(crate) fn partner_id(text: &str) -> Result<PartnerId, Failure> {
    PartnerId::parse(text)
        .ok_or_else(|| Failure::input("--partner: expected 1 to 64 of a-z, 0-9, _ and -"))
}
