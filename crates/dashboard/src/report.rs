//! A report as one file with the charts of the pages, which loads nothing and runs no script but its own.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};

const STYLE: &str = include_str!("pages/style.css");
/// The modules of the charts import nothing, so one script holds them.
const SCRIPT: &str =
    concat!(include_str!("pages/charts.js"), include_str!("pages/dom.js"), include_str!("pages/report.js"));

/// What a report of charts shows.
#[derive(Clone, Copy, Debug)]
pub struct ChartReport<'t> {
    /// The title of the page, as markup.
    pub title: &'t str,
    /// The part above the charts as markup, in which every text of others is escaped.
    pub above: &'t str,
    /// The part below the charts, as markup too.
    pub below: &'t str,
    /// The numbers of the charts as JSON: `length_ms` and `services`, each with a `name` and `variants`; a
    /// variant has a `title`, its `counts` in equal parts of the length, `changes` as `[after_ms, pods, why]`
    /// and `changes_left_out`, the number of those behind them.
    pub numbers: &'t str,
}

impl ChartReport<'_> {
    /// The whole file. Its policy names the style and the script by their hashes: no other ones take effect.
    pub fn file(&self) -> String {
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'; \
             require-trusted-types-for 'script'",
            hash(SCRIPT),
            hash(STYLE)
        );
        // In JSON a `<` stands in texts alone, where it may be written so; no text can end the element.
        let numbers = self.numbers.replace('<', "\\u003c");
        let Self { title, above, below, .. } = self;
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<main>\n{above}\n<div id=\"charts\"></div>\n\
             <noscript>The charts need scripts.</noscript>\n{below}\n</main>\n\
             <script type=\"application/json\" id=\"numbers\">{numbers}</script>\n\
             <script type=\"module\">{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }
}

/// How a policy names a text that stands in the file.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(digest(&SHA256, text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(numbers: &str) -> String {
        ChartReport { title: "a title", above: "<h1>above</h1>", below: "<p>below</p>", numbers }.file()
    }

    #[test]
    fn a_report_names_its_style_and_its_script_by_their_hashes_and_loads_nothing() {
        let file = file("{}");
        // As `printf %s '' | openssl dgst -sha256 -binary | base64` has it.
        assert_eq!(hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        for (begin, end, text) in
            [("<style>", "</style>", STYLE), ("<script type=\"module\">", "</script>", SCRIPT)]
        {
            let (_, rest) = file.split_once(begin).expect("it has one");
            let (found, _) = rest.split_once(end).expect("it ends");
            assert_eq!(found, text);
            assert!(file.contains(&hash(text)), "{file}");
        }
        for outside in [" src=", "href=", "@import", "url(", "import {"] {
            assert!(!file.contains(outside), "{outside} is in the file");
        }
        assert!(file.contains("<h1>above</h1>\n<div id=\"charts\">") && file.contains("<p>below</p>"));
    }

    #[test]
    fn a_text_among_the_numbers_ends_no_element() {
        let file = file(r#"{"name":"</script><img src=x onerror=alert(1)>"}"#);
        assert!(file.contains(r#"{"name":"\u003c/script>\u003cimg src=x onerror=alert(1)>"}"#));
        assert_eq!(file.matches("</script>").count(), 2);
    }
}
