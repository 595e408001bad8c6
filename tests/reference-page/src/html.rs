//! Writes HTML: escapes text, and renders the simple markup of descriptions.

/// Escapes text for use between tags and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// A label that shows whether a field or parameter is required.
pub(super) const fn mark(required: bool) -> &'static str {
    if required {
        " <span class=\"required\">required</span>"
    } else {
        " <span class=\"dim\">optional</span>"
    }
}

/// One row of a table.
pub(super) struct Row {
    /// The id of the row, for links.
    pub(super) anchor: Option<String>,
    /// The cells, as HTML.
    pub(super) cells: Vec<String>,
}

impl Row {
    /// A row without an anchor.
    pub(super) fn of<const N: usize>(cells: [String; N]) -> Self {
        Self {
            anchor: None,
            cells: cells.into(),
        }
    }
}

/// A table that scrolls sideways, also with the keyboard.
///
/// On a narrow screen each row is a block: the first cell is its title, and the other cells show
/// their column's heading. The `role` attributes keep the table's meaning for assistive programs,
/// which the style would hide.
pub(super) fn table(label: &str, heads: &[&str], rows: &[Row]) -> String {
    let head: String = heads
        .iter()
        .map(|head| format!("<th role=\"columnheader\">{head}</th>"))
        .collect();
    let cell = |(at, text): (usize, &String)| {
        let head = heads.get(at).filter(|head| at > 0 && **head != "Meaning");
        let label = head.map(|head| format!(" data-label=\"{head}\""));
        format!("<td role=\"cell\"{}>{text}</td>", label.unwrap_or_default())
    };
    let row = |row: &Row| {
        let anchor = row.anchor.as_ref();
        let anchor = anchor.map(|anchor| format!(" id=\"{}\"", escape(anchor)));
        let cells: String = row.cells.iter().enumerate().map(cell).collect();
        format!(
            "<tr role=\"row\"{}>{cells}</tr>",
            anchor.unwrap_or_default()
        )
    };
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\"><table role=\"table\">\
         <thead role=\"rowgroup\"><tr role=\"row\">{head}</tr></thead>\
         <tbody role=\"rowgroup\">{}</tbody></table></div>",
        escape(label),
        rows.iter().map(row).collect::<String>()
    )
}

/// Renders a description: paragraphs, `- ` lists, `#` headings, code spans and fenced code.
///
/// Other markup is escaped. Headings get the given level; at level 0 they are bold paragraphs, for
/// use in a table.
pub(super) fn prose(text: &str, heading_level: u8) -> String {
    let mut html = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let line = line.trim_end();
        if line.trim().is_empty() {
            continue;
        }
        if line.trim_start().starts_with("```") {
            let code: Vec<&str> = lines
                .by_ref()
                .take_while(|line| !line.trim_start().starts_with("```"))
                .collect();
            html.push_str(&code_block(&code.join("\n")));
        } else if let Some(heading) = line.trim_start_matches('#').strip_prefix(' ')
            && line.starts_with('#')
        {
            html.push_str(&match heading_level {
                0 => format!("<p><strong>{}</strong></p>", inline(heading)),
                level => format!("<h{level}>{}</h{level}>", inline(heading)),
            });
        } else if line.starts_with("- ") {
            let mut items = vec![line.to_owned()];
            while let Some(next) = lines.next_if(|next| !next.trim().is_empty()) {
                match (next.starts_with("- "), items.last_mut()) {
                    (false, Some(item)) => {
                        item.push(' ');
                        item.push_str(next.trim());
                    }
                    _ => items.push(next.to_owned()),
                }
            }
            let items = items
                .iter()
                .map(|item| format!("<li>{}</li>", inline(item.trim_start_matches("- "))));
            html.push_str(&format!("<ul>{}</ul>", items.collect::<String>()));
        } else {
            let mut paragraph = line.to_owned();
            let more = |next: &&str| !next.trim().is_empty() && !next.starts_with("- ");
            while let Some(next) = lines.next_if(more) {
                paragraph.push(' ');
                paragraph.push_str(next.trim());
            }
            html.push_str(&format!("<p>{}</p>", inline(&paragraph)));
        }
    }
    html
}

/// Renders code spans. Backticks stay text if one of them is unpaired.
pub(super) fn inline(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let balanced = parts.len() % 2 == 1;
    if !balanced {
        return escape(text);
    }
    let spans = parts.iter().enumerate().map(|(at, part)| {
        if at % 2 == 1 {
            format!("<code>{}</code>", escape(part))
        } else {
            escape(part)
        }
    });
    spans.collect()
}

pub(super) fn code_block(code: &str) -> String {
    format!("<pre tabindex=\"0\"><code>{}</code></pre>", escape(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_description_is_escaped() {
        assert_eq!(escape("<a href=\"'&"), "&lt;a href=&quot;&#39;&amp;");
        assert_eq!(
            prose("<script>`<b>`", 2),
            "<p>&lt;script&gt;<code>&lt;b&gt;</code></p>"
        );
        assert_eq!(inline("a ` b"), "a ` b");
    }

    #[test]
    fn renders_paragraphs_lists_headings_and_code() {
        let text =
            "# Title\n\nOne\ntwo.\n\n- `a`: first\n  goes on\n- second\n\n```\n<x>\n```\nEnd";
        assert_eq!(
            prose(text, 2),
            "<h2>Title</h2><p>One two.</p><ul><li><code>a</code>: first goes on</li>\
             <li>second</li></ul><pre tabindex=\"0\"><code>&lt;x&gt;</code></pre><p>End</p>"
        );
    }
}
