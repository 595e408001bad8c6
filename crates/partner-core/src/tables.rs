//! Files of TOML tables that operators write, read so that every fault is named at once, with its
//! line and the nearest key that is known.

mod fault;
mod section;

use toml::de::DeTable;

pub use fault::{Fault, Faults, Sink};
pub use section::{Field, Section, Shape};

/// Reads a file whose tables are `shapes`, of which `root` is the file itself. `document` takes
/// what it needs and notes what is wrong.
///
/// # Errors
/// [`Faults`]: all of them, unless the syntax itself is broken; then those of the syntax.
pub fn read<T>(
    text: &str,
    root: &'static Shape,
    shapes: &'static [&'static Shape],
    document: impl FnOnce(&mut Sink<'_>, &Section<'_, '_>) -> T,
) -> Result<T, Faults> {
    let mut sink = Sink::new(text, shapes);
    let (table, broken) = DeTable::parse_recoverable(text);
    if !broken.is_empty() {
        for error in &broken {
            let at = error.span().map_or(0, |span| span.start);
            sink.add(at, "", one_line(error.message()));
        }
        return Err(sink.into_faults());
    }
    let section = Section::open(&mut sink, root, 0, table.get_ref());
    let read = document(&mut sink, &section);
    if sink.is_empty() {
        Ok(read)
    } else {
        Err(sink.into_faults())
    }
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
