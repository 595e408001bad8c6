//! One run: the figures of both stores, sequentially, in one table.

use std::fs;
use std::path::PathBuf;

use crate::programs::{describe, locate};
use crate::{Options, Result, machine, postgres, sqlite};
use acceptance::table::Table;

/// Resources shared by all figures of a run.
pub(crate) struct Bench {
    pub(crate) options: Options,
    /// On the disk under measurement.
    pub(crate) folder: PathBuf,
    pub(crate) programs: PathBuf,
    pub(crate) table: Table,
}

impl Bench {
    /// Finds the programs and creates a folder.
    pub(crate) fn prepare(options: Options) -> Result<Self> {
        let programs = locate(options.programs.as_deref())?;
        let described = describe(&programs)?;
        for line in &described {
            eprintln!("{line}");
        }
        let beside = match &options.data {
            Some(folder) => folder.clone(),
            None => std::env::current_exe()?
                .parent()
                .ok_or("this program's folder is unknown")?
                .to_owned(),
        };
        let folder = beside.join(format!("bench-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let mut table = Table::default();
        table.notes.push(format!(
            "medians of {} rounds of service and baseline; the ratio is the median of the rounds' ratios",
            options.rounds()
        ));
        table.notes.push(machine::describe());
        table.notes.extend(described);
        Ok(Self {
            options,
            folder,
            programs,
            table,
        })
    }

    /// All figures. Prints the measured figures even if a later figure or the final audit
    /// fails.
    pub(crate) async fn run(mut self) -> Result<()> {
        let measured = self.measure().await;
        println!("{}", self.table);
        fs::remove_dir_all(&self.folder)?;
        measured
    }

    async fn measure(&mut self) -> Result<()> {
        if self.options.wants_any(sqlite::FIGURES) {
            sqlite::measure(self).await?;
        }
        if self.options.wants_any(postgres::FIGURES) {
            postgres::measure(self).await?;
        }
        Ok(())
    }

    /// The repetitions of a figure; prints a line as each begins.
    pub(crate) fn turns(&self, figure: &'static str) -> impl Iterator<Item = usize> + use<> {
        (0..self.options.rounds()).inspect(move |turn| eprintln!("{figure}, round {}", turn + 1))
    }

    /// The amount of work, scaled by the options.
    pub(crate) fn work(&self, usual: usize) -> usize {
        self.options.work(usual)
    }
}
