//! Log lines for machines: one JSON object with the event's fields and the fields of its spans.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes flat objects: a search for `request.id` finds every line of a request.
#[derive(Debug)]
pub(super) struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        writer.write_str("{\"timestamp\":\"")?;
        SystemTime.format_time(&mut writer)?;
        let metadata = event.metadata();
        write!(writer, "\",\"level\":\"{}\"", metadata.level())?;
        let mut fields = Fields {
            writer: writer.by_ref(),
            written: Ok(()),
        };
        event.record(&mut fields);
        fields.written?;
        for span in context
            .event_scope()
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                // Each span has an object. Only its fields belong here.
                let inside = fields.trim().trim_start_matches('{').trim_end_matches('}');
                if !inside.is_empty() {
                    write!(writer, ",{inside}")?;
                }
            }
        }
        writer.write_str(",\"target\":")?;
        quoted(&mut writer, metadata.target())?;
        writer.write_str("}\n")
    }
}

/// Writes the fields of an event, each after a comma.
struct Fields<'w> {
    writer: Writer<'w>,
    written: fmt::Result,
}

impl Fields<'_> {
    fn field(&mut self, field: &Field, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        if self.written.is_ok() {
            self.written = self.named(field.name(), value);
        }
    }

    fn named(
        &mut self,
        name: &str,
        value: impl FnOnce(&mut Writer<'_>) -> fmt::Result,
    ) -> fmt::Result {
        self.writer.write_char(',')?;
        quoted(&mut self.writer, name)?;
        self.writer.write_char(':')?;
        value(&mut self.writer)
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.field(field, |writer| quoted(writer, value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.field(field, |writer| write!(writer, "{value}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.field(field, |writer| write!(writer, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.field(field, |writer| write!(writer, "{value}"));
    }

    /// Values without a JSON form are text, including numbers such as NaN.
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.field(field, |writer| quoted(writer, &format!("{value:?}")));
    }
}

/// Writes quoted text. No character of it can end the string or the line.
fn quoted(writer: &mut Writer<'_>, text: &str) -> fmt::Result {
    writer.write_char('"')?;
    for letter in text.chars() {
        match letter {
            '"' => writer.write_str("\\\"")?,
            '\\' => writer.write_str("\\\\")?,
            '\n' => writer.write_str("\\n")?,
            // Control characters, and the two characters that some readers treat as line ends.
            letter if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') => {
                write!(writer, "\\u{:04x}", u32::from(letter))?;
            }
            letter => writer.write_char(letter)?,
        }
    }
    writer.write_char('"')
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::fmt::format::JsonFields;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::telemetry::tests::Written;

    /// The log lines of a call, without their timestamps.
    fn written(run: impl FnOnce()) -> Vec<String> {
        let written = Written::default();
        let writer = written.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(move || writer.clone())
            .fmt_fields(JsonFields::new())
            .event_format(Lines);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), run);
        let text = written.text();
        let line = |line: &str| {
            let (begin, rest) = line.split_once("\",\"level\":").unwrap();
            assert!(begin.starts_with("{\"timestamp\":\"2"), "{begin}");
            format!("{{\"level\":{rest}")
        };
        text.lines().map(line).collect()
    }

    #[test]
    fn event_has_the_fields_of_its_spans() {
        let lines = written(|| {
            let request = tracing::error_span!(
                "request",
                request.id = "req_1",
                empty = tracing::field::Empty
            );
            let _in_request = request.enter();
            let bare = tracing::error_span!("bare");
            let _in_bare = bare.enter();
            tracing::info!(trade.id = 7, held = true, "Said");
        });
        assert_eq!(
            lines,
            [
                r#"{"level":"INFO","message":"Said","trade.id":7,"held":true,"request.id":"req_1","target":"runtime::telemetry::lines::tests"}"#
            ]
        );
    }

    #[test]
    fn special_characters_end_no_string_and_no_line() {
        let hostile = "a\"b\\c\nd\re\u{1b}[31mf\0g\u{85}h\u{2028}i\u{7f}";
        let lines = written(|| {
            let _span = tracing::error_span!("request", name = hostile).entered();
            tracing::warn!(target: "here", text = hostile, shown = %hostile, "{hostile}");
        });
        let [line] = lines.as_slice() else {
            panic!("expected one line: {lines:?}")
        };
        let quoted = r#""a\"b\\c\nd\u000de\u001b[31mf\u0000g\u0085h\u2028i\u007f""#;
        assert!(line.contains(&format!("\"message\":{quoted}")), "{line}");
        assert!(line.contains(&format!("\"text\":{quoted}")), "{line}");
        assert!(line.is_ascii() || !line.contains('\u{1b}'), "{line}");
    }
}
