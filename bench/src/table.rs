//! The table that is printed.

use std::fmt;

/// One figure and what it is compared with.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) measured: String,
    pub(crate) reference: String,
    pub(crate) ratio: f64,
    pub(crate) bar: &'static str,
    pub(crate) goal: &'static str,
}

/// Everything of one run.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) notes: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for note in &self.notes {
            writeln!(f, "- {note}")?;
        }
        writeln!(f)?;
        writeln!(f, "| figure | service | reference | ratio | bar | goal |")?;
        writeln!(f, "| --- | --- | --- | --- | --- | --- |")?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {} | {} | {:.2} | {} | {} |",
                row.what, row.measured, row.reference, row.ratio, row.bar, row.goal
            )?;
        }
        Ok(())
    }
}

/// A rate as people read it: `12,300/s`.
pub(crate) fn rate(per_second: f64) -> String {
    let whole = format!("{per_second:.0}");
    let mut text = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{text}/s")
}

#[cfg(test)]
mod tests {
    use super::{Row, Table, rate};

    #[test]
    fn rates_are_grouped() {
        assert_eq!(rate(7.4), "7/s");
        assert_eq!(rate(123_456.0), "123,456/s");
        assert_eq!(rate(1000.0), "1,000/s");
    }

    #[test]
    fn the_table_is_markdown() {
        let row = Row {
            what: "a".to_owned(),
            measured: "1/s".to_owned(),
            reference: "2/s".to_owned(),
            ratio: 0.5,
            bar: "≥ 1",
            goal: "",
        };
        let table = Table {
            notes: vec!["two cores".to_owned()],
            rows: vec![row],
        };
        let text = table.to_string();
        assert!(text.starts_with("- two cores\n\n| figure |"));
        assert!(text.ends_with("| a | 1/s | 2/s | 0.50 | ≥ 1 |  |\n"));
    }
}
