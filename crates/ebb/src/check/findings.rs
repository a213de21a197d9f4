//! What was found, one line each, and whether all of it is well.

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckFinding {
    what: String,
    verdict: FindingVerdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FindingVerdict {
    Well,
    /// It works, with a remark that a person should read.
    Remark(String),
    /// What could not be looked at, and why.
    Unknown(String),
    /// It does not work as it must; the text says how to mend it.
    Wrong(String),
}

impl CheckFinding {
    pub(crate) fn well(what: String) -> Self {
        Self { what, verdict: FindingVerdict::Well }
    }

    pub(crate) fn remark(what: String, remark: String) -> Self {
        Self { what, verdict: FindingVerdict::Remark(remark) }
    }

    pub(crate) fn unknown(what: String, why: String) -> Self {
        Self { what, verdict: FindingVerdict::Unknown(why) }
    }

    pub(crate) fn wrong(what: String, advice: String) -> Self {
        Self { what, verdict: FindingVerdict::Wrong(advice) }
    }

    pub(crate) fn of(is_well: bool, what: String, advice: impl FnOnce() -> String) -> Self {
        if is_well { Self::well(what) } else { Self::wrong(what, advice()) }
    }
}

/// All of them, in sections.
#[derive(Debug, Default)]
pub(crate) struct CheckFindings(Vec<FindingSection>);

/// The findings under one heading.
#[derive(Debug)]
struct FindingSection {
    title: &'static str,
    findings: Vec<CheckFinding>,
    /// The number of findings that are not well because of something that the report has told already.
    folded: usize,
}

impl CheckFindings {
    pub(crate) fn begin(&mut self, title: &'static str) {
        self.0.push(FindingSection { title, findings: Vec::new(), folded: 0 });
    }

    pub(crate) fn add(&mut self, finding: CheckFinding) {
        self.section().findings.push(finding);
    }

    /// Adds a finding that follows from a wrong one of this report: one that is well stands there as ever,
    /// any other one is only counted.
    pub(crate) fn fold(&mut self, finding: CheckFinding) {
        if finding.verdict == FindingVerdict::Well {
            self.add(finding);
        } else {
            self.section().folded += 1;
        }
    }

    fn section(&mut self) -> &mut FindingSection {
        self.0.last_mut().expect("a section was begun")
    }

    pub(crate) fn is_well(&self) -> bool {
        let mut all = self.0.iter().flat_map(|section| &section.findings);
        !all.any(|finding| matches!(finding.verdict, FindingVerdict::Wrong(_)))
    }

    pub(crate) fn text(&self) -> String {
        let mut lines = Vec::new();
        for FindingSection { title, findings, folded } in &self.0 {
            lines.push((*title).to_owned());
            for CheckFinding { what, verdict } in findings {
                match verdict {
                    FindingVerdict::Well => lines.push(format!("  ok       {what}")),
                    FindingVerdict::Remark(remark) => lines.extend(with_reason("  remark ", what, remark)),
                    FindingVerdict::Unknown(why) => lines.extend(with_reason("  unknown", what, why)),
                    FindingVerdict::Wrong(advice) => lines.extend(with_reason("  WRONG  ", what, advice)),
                }
            }
            lines.extend(folded_line(*folded));
            lines.push(String::new());
        }
        let verdict = if self.is_well() { "all is well" } else { "something is wrong" };
        lines.push(verdict.to_owned());
        lines.join("\n")
    }
}

fn folded_line(folded: usize) -> Option<String> {
    match folded {
        0 => None,
        1 => Some("  1 finding more is not well, because ebb does not start".to_owned()),
        more => Some(format!("  {more} findings more are not well, because ebb does not start")),
    }
}

fn with_reason(mark: &str, what: &str, reason: &str) -> [String; 2] {
    [format!("{mark}  {what}"), format!("           {reason}")]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The text of a report with this finding alone.
    pub(crate) fn text_of(finding: CheckFinding) -> String {
        let mut findings = CheckFindings::default();
        findings.begin("a section");
        findings.add(finding);
        findings.text()
    }

    #[test]
    fn findings_that_follow_from_a_wrong_one_are_counted() {
        let mut findings = CheckFindings::default();
        findings.begin("ebb itself");
        findings.fold(CheckFinding::well("it is there".to_owned()));
        findings.fold(CheckFinding::unknown("its owner".to_owned(), "it does not answer".to_owned()));
        let line = "  1 finding more is not well, because ebb does not start";
        assert_eq!(findings.text(), format!("ebb itself\n  ok       it is there\n{line}\n\nall is well"));
        findings.fold(CheckFinding::wrong("its Secret".to_owned(), "make it".to_owned()));
        assert!(findings.text().contains("  2 findings more are not well"), "{}", findings.text());
    }

    #[test]
    fn a_wrong_finding_has_advice_and_an_unknown_one_is_not_wrong() {
        let mut findings = CheckFindings::default();
        findings.begin("cluster");
        findings.add(CheckFinding::well("it answers".to_owned()));
        findings.add(CheckFinding::unknown("its Secrets".to_owned(), "you may not read them".to_owned()));
        assert!(findings.is_well());
        findings.add(CheckFinding::of(false, "it is new".to_owned(), || "upgrade it".to_owned()));
        assert!(!findings.is_well());
        let expected = "cluster\n  ok       it answers\n  unknown  its Secrets\n           you may not read them\n  WRONG    it is new\n           upgrade it\n\nsomething is wrong";
        assert_eq!(findings.text(), expected);
    }
}
