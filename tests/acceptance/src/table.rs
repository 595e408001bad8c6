//! The printed table.
#![expect(clippy::float_arithmetic, reason = "figures of a benchmark, not money")]

use std::fmt;
use std::time::Duration;

use crate::measure::median;

/// Label, reference and required ratio of a figure.
pub struct Figure {
    pub on: &'static str,
    pub what: &'static str,
    pub bar: &'static str,
    pub goal: &'static str,
}

/// The repetitions of one comparison.
#[derive(Default)]
pub struct Turns {
    service: Vec<f64>,
    reference: Vec<f64>,
}

impl Turns {
    pub fn push(&mut self, service: f64, reference: f64) {
        self.service.push(service);
        self.reference.push(reference);
    }

    /// The medians of both, and the median of the ratios.
    pub fn row(&self, figure: &Figure, shown: fn(f64) -> String) -> Row {
        let both = self.service.iter().zip(&self.reference);
        let ratios: Vec<f64> = both
            .map(|(service, reference)| service / reference)
            .collect();
        Row {
            on: figure.on,
            what: figure.what,
            measured: shown(median(&self.service)),
            reference: shown(median(&self.reference)),
            ratio: median(&ratios),
            bar: figure.bar,
            goal: figure.goal,
        }
    }
}

/// One figure and its reference.
#[derive(Debug)]
pub struct Row {
    on: &'static str,
    what: &'static str,
    measured: String,
    reference: String,
    ratio: f64,
    bar: &'static str,
    goal: &'static str,
}

impl Row {
    /// Compares two numbers.
    pub fn pair(figure: &Figure, service: f64, reference: f64, shown: fn(f64) -> String) -> Self {
        let mut turn = Turns::default();
        turn.push(service, reference);
        turn.row(figure, shown)
    }

    /// Compares two durations.
    pub fn spans(figure: &Figure, service: Duration, reference: Duration) -> Self {
        let (service, reference) = (service.as_secs_f64(), reference.as_secs_f64());
        Self::pair(figure, service, reference, millis)
    }
}

/// All figures of one run.
#[derive(Debug, Default)]
pub struct Table {
    pub notes: Vec<String>,
    pub rows: Vec<Row>,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for note in &self.notes {
            writeln!(f, "- {note}")?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "| on | figure | service | baseline | ratio | required | target |"
        )?;
        writeln!(f, "| --- | --- | --- | --- | --- | --- | --- |")?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {} | {} | {} | {:.2} | {} | {} |",
                row.on, row.what, row.measured, row.reference, row.ratio, row.bar, row.goal
            )?;
        }
        Ok(())
    }
}

/// A rate with thousands separators: `12,300/s`.
pub fn rate(per_second: f64) -> String {
    format!("{}/s", grouped(per_second))
}

/// Bytes with thousands separators: `12,300 B`.
pub fn bytes(count: f64) -> String {
    format!("{} B", grouped(count))
}

/// Memory in MiB: `67.3 MiB`.
pub fn mebibytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / 1024.0 / 1024.0)
}

/// Short durations in milliseconds: `2.10 ms`.
pub fn millis(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1000.0)
}

fn grouped(number: f64) -> String {
    let whole = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Figure, Table, Turns, bytes, mebibytes, millis, rate};

    #[test]
    fn numbers_have_thousands_separators() {
        assert_eq!(rate(7.4), "7/s");
        assert_eq!(rate(123_456.0), "123,456/s");
        assert_eq!(bytes(1000.0), "1,000 B");
        assert_eq!(mebibytes(1_572_864.0), "1.5 MiB");
        assert_eq!(millis(0.002_104), "2.10 ms");
    }

    #[test]
    fn table_is_markdown_and_shows_medians() {
        let figure = Figure {
            on: "SQLite",
            what: "a",
            bar: "≥ 1",
            goal: "",
        };
        let mut turns = Turns::default();
        for (service, reference) in [(1.0, 2.0), (3.0, 3.0), (2.0, 8.0)] {
            turns.push(service, reference);
        }
        let table = Table {
            notes: vec!["two cores".to_owned()],
            rows: vec![turns.row(&figure, rate)],
        };
        let text = table.to_string();
        assert!(text.starts_with("- two cores\n\n| on | figure |"));
        assert!(text.ends_with("| SQLite | a | 2/s | 3/s | 0.50 | ≥ 1 |  |\n"));
    }
}
