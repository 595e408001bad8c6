//! The built files of the browser side, and the places in them that a server fills.

use kernel::Mode;
use partner_core::origin::Origin;

/// All files by name, such as `assets/widget-NI4PQ3M4.js`, in order of their names.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The folder of the widget's files, whose names contain a hash of their content.
pub(super) const ASSETS: &str = "assets/";
/// The folder of the files of the sandbox's pages, whose names contain a hash too.
pub(super) const SANDBOX: &str = "sandbox/";
/// The npm package of the SDK.
pub(super) const PACKAGE: &str = "penstock-gate.tgz";
/// The folder of the demo shop's files.
const DEMO: &str = "demo/";

/// What a server writes into the files.
pub(super) struct Places<'p> {
    pub(super) gate: &'p Origin,
    pub(super) widget: &'p Origin,
    pub(super) mode: Mode,
}

/// What the demo shop's server writes into its page.
#[derive(Debug, Clone, Copy)]
pub struct DemoPlaces<'p> {
    /// The origin of the widget, from which the page loads the SDK.
    pub widget: &'p Origin,
    /// The demo partner's publishable key.
    pub publishable_key: &'p str,
}

/// A file of the demo shop.
#[derive(Debug, Clone, Copy)]
pub struct DemoFile {
    /// Its `Content-Type`.
    pub kind: &'static str,
    pub bytes: &'static [u8],
}

/// A text file with all places filled. An unknown name gives an empty text; the tests rule it out.
pub(super) fn text(name: &str, places: &Places<'_>) -> String {
    let bytes = find(name).unwrap_or_default();
    String::from_utf8_lossy(bytes)
        .replace("{{penstock.gate_origin}}", places.gate.as_str())
        .replace("{{penstock.widget_origin}}", places.widget.as_str())
        .replace("{{penstock.mode}}", places.mode.as_str())
}

/// The scripts and styles of a folder.
pub(super) fn of_folder(folder: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let files = FILES.iter().copied();
    files.filter(move |(name, _)| name.starts_with(folder))
}

/// The npm package. An application that installs it names the origins, so nothing is filled in.
pub(super) fn package() -> &'static [u8] {
    find(PACKAGE).unwrap_or_default()
}

/// The demo shop's page.
#[must_use]
pub fn demo_page(places: DemoPlaces<'_>) -> String {
    let bytes = find("demo.html").unwrap_or_default();
    String::from_utf8_lossy(bytes)
        .replace("{{penstock.widget_origin}}", places.widget.as_str())
        .replace("{{penstock.publishable_key}}", places.publishable_key)
}

/// The demo shop's script or style of a path such as `/demo/demo.js`; `None` for any other path.
#[must_use]
pub fn demo_file(path: &str) -> Option<DemoFile> {
    let name = path.strip_prefix('/')?;
    let bytes = find(name).filter(|_| name.starts_with(DEMO))?;
    let kind = kind(name);
    Some(DemoFile { kind, bytes })
}

/// The `Content-Type` of a file.
pub(super) fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        // No media type is registered for declarations of TypeScript.
        Some("ts") => "application/typescript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        Some("txt") => "text/plain; charset=utf-8",
        Some("tgz") => "application/gzip",
        _ => "application/octet-stream",
    }
}

fn find(name: &str) -> Option<&'static [u8]> {
    let found = FILES.binary_search_by_key(&name, |(name, _)| name).ok()?;
    FILES.get(found).map(|(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> (Origin, Origin) {
        let origin = |port| Origin::of_address(([127, 0, 0, 1], port).into());
        (origin(4020), origin(4030))
    }

    #[test]
    fn files_have_places_that_server_fills() {
        let (gate, widget) = places();
        let places = Places {
            gate: &gate,
            widget: &widget,
            mode: Mode::Test,
        };
        for (name, filled) in [
            (
                "embed.html",
                vec!["content=\"http://127.0.0.1:4020\"", "content=\"test\""],
            ),
            ("sandbox.html", vec!["content=\"http://127.0.0.1:4020\""]),
            (
                "gate.js",
                vec![
                    "\"http://127.0.0.1:4020\"",
                    "\"http://127.0.0.1:4030\"",
                    "\"pk_test_\"",
                ],
            ),
            (
                "gate.mjs",
                vec![
                    "\"http://127.0.0.1:4020\"",
                    "\"http://127.0.0.1:4030\"",
                    "\"pk_test_\"",
                ],
            ),
        ] {
            let text = text(name, &places);
            for filled in filled {
                assert_eq!(text.matches(filled).count(), 1, "{name}: {filled}");
            }
            // Each response of the page fills the place for origins.
            let text = text.replace("{{penstock.origins}}", "");
            assert!(!text.contains("{{penstock."), "{name}");
        }
        let page = demo_page(DemoPlaces {
            widget: &widget,
            publishable_key: "pk_test_x",
        });
        assert!(page.contains("src=\"http://127.0.0.1:4030/gate.js\""));
        assert!(page.contains("content=\"pk_test_x\"") && !page.contains("{{penstock."));
    }

    #[test]
    fn pages_refer_only_to_files_that_exist() {
        for (page, folder) in [("embed.html", "/assets/"), ("sandbox.html", "/sandbox/")] {
            let page = String::from_utf8(find(page).unwrap().to_vec()).unwrap();
            let named: Vec<&str> = page
                .split('"')
                .filter(|it| it.starts_with(folder))
                .collect();
            assert!(named.len() >= 2, "{named:?}");
            for name in named {
                assert!(find(&name[1..]).is_some(), "{name}");
            }
        }
        assert!(demo_file("/demo/demo.js").is_some() && demo_file("/demo/demo.css").is_some());
        for other in [
            "/demo.html",
            "/gate.js",
            "/demo/",
            "/demo/../gate.js",
            "demo/demo.js",
        ] {
            assert!(demo_file(other).is_none(), "{other}");
        }
    }
}
