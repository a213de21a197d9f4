//! The whole report as one file that any browser shows: the table, the charts, the differences and the
//! verdict, without a script and without anything to load.

use std::fmt::Write as _;

use super::chart::escaped_for_markup;

const STYLE: &str = "body{font-family:sans-serif;margin:2em;max-width:70em}table{border-collapse:collapse}\
td,th{padding:.2em .6em;border-bottom:1px solid #ddd;text-align:right}\
td:nth-child(-n+2),th:nth-child(-n+2){text-align:left}pre{white-space:pre-wrap}svg{width:100%}";

/// What the page shows, from top to bottom.
pub(super) struct ReportPage<'o> {
    pub(super) headings: &'o [&'o str],
    pub(super) rows: Vec<Vec<String>>,
    pub(super) charts: String,
    /// What differs most and the verdict, as they are printed.
    pub(super) texts: Vec<String>,
}

impl ReportPage<'_> {
    /// The page as markup. A String takes whatever is written to it, so that no error is lost here.
    pub(super) fn markup(&self) -> String {
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>ebb simulate</title>\n\
             <style>{STYLE}</style>\n<h1>ebb simulate</h1>\n<table><tr>"
        );
        for heading in self.headings {
            let _ = write!(page, "<th>{}", escaped_for_markup(heading));
        }
        for row in &self.rows {
            page.push_str("\n<tr>");
            for cell in row {
                let _ = write!(page, "<td>{}", escaped_for_markup(cell));
            }
        }
        let _ = write!(page, "\n</table>\n{}", self.charts);
        for text in &self.texts {
            let _ = writeln!(page, "<pre>{}</pre>", escaped_for_markup(text.trim()));
        }
        page + "</html>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_whole_and_loads_nothing() {
        let page = ReportPage {
            headings: &["VARIANT", "PODS"],
            rows: vec![vec!["target=<5>".to_owned(), "1-8".to_owned()]],
            charts: "<svg></svg>\n".to_owned(),
            texts: vec!["\na & b".to_owned()],
        };
        let markup = page.markup();
        for expected in ["<th>VARIANT", "<td>target=&lt;5&gt;<td>1-8", "<svg></svg>", "<pre>a &amp; b</pre>"]
        {
            assert!(markup.contains(expected), "{expected} is missing in\n{markup}");
        }
        for outside in ["<script", "src=", "href=", "@import", "url("] {
            assert!(!markup.contains(outside), "{outside} in\n{markup}");
        }
    }
}
