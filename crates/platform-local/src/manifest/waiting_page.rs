//! The page that a manifest names for browsers that wait for a pod.

use std::io;
use std::path::Path;

use settings::{WAITING_PAGE_ANNOTATION, WaitingPageSetting};
use vocabulary::{WaitingPage, shown};

use crate::manifest::fields::Report;
use crate::manifest::source::{read_regular, text_of};
use crate::manifest::yaml::TextPlace;

/// The page; a file is read now, beside the manifest if its path is relative. One that cannot be had is
/// refused, at the place of its Service.
pub(crate) fn read(
    setting: Option<&WaitingPageSetting>,
    place: TextPlace,
    report: &mut Report,
) -> WaitingPage {
    let Some(WaitingPageSetting::File(file)) = setting else {
        return setting.map(WaitingPageSetting::without_file).unwrap_or_default();
    };
    let folder = report.file().parent().unwrap_or(Path::new(""));
    match text_in(&folder.join(&**file)) {
        Ok(text) => WaitingPage::Text(text.into()),
        Err(error) => {
            let message = format!(
                "annotation {WAITING_PAGE_ANNOTATION} is {}, which cannot be read: {error}; write \"auto\", \"off\" or the path of a page in HTML",
                shown(file)
            );
            report.refuse(place, message);
            WaitingPage::Off
        }
    }
}

fn text_in(file: &Path) -> io::Result<String> {
    let bytes = read_regular(file)?;
    if bytes.is_empty() || bytes.len() > WaitingPage::BYTES_MAX {
        let (found, most) = (bytes.len(), WaitingPage::BYTES_MAX);
        return Err(io::Error::other(format!("it has {found} bytes, and a page has 1 to {most}")));
    }
    text_of(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_beside_its_manifest() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let manifest = folder.path().join("hello.yaml");
        std::fs::write(folder.path().join("page.html"), "<p>soon").expect("it can be written");
        let read = |setting: Option<WaitingPageSetting>| {
            let mut report = Report::about(&manifest);
            (read(setting.as_ref(), (1, 1), &mut report), report.findings.problems)
        };
        assert_eq!(read(None), (WaitingPage::Off, Vec::new()));
        assert_eq!(read(Some(WaitingPageSetting::Auto)), (WaitingPage::Auto, Vec::new()));
        let page = read(Some(WaitingPageSetting::File("page.html".into())));
        assert_eq!(page, (WaitingPage::Text("<p>soon".into()), Vec::new()));
        let (page, problems) = read(Some(WaitingPageSetting::File("other.html".into())));
        assert_eq!(page, WaitingPage::Off);
        assert!(problems[0].message.contains("\"other.html\", which cannot be read"), "{problems:?}");
    }
}
