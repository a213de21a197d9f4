//! `behavior`, as the API writes it and as Go's field names in an annotation.

use vocabulary::Findings;

use super::api_version::HpaApiVersion;
use super::document_fields::{DocumentFields, Spelling, double};
use super::node::DocumentNode;
use crate::hpa::behavior::{Behavior, PolicyAmount, RulesOrigin, ScalingPolicy, ScalingRules, SelectPolicy};

/// The names of the fields in one of the two spellings.
struct FieldNames {
    scale_up: &'static str,
    scale_down: &'static str,
    window: &'static str,
    select: &'static str,
    policies: &'static str,
    tolerance: &'static str,
    kind: &'static str,
    value: &'static str,
    period: &'static str,
}

const API_WORDS: FieldNames = FieldNames {
    scale_up: "scaleUp",
    scale_down: "scaleDown",
    window: "stabilizationWindowSeconds",
    select: "selectPolicy",
    policies: "policies",
    tolerance: "tolerance",
    kind: "type",
    value: "value",
    period: "periodSeconds",
};

/// Kubernetes' internal struct has no names of its own for JSON, so an annotation shows those of its fields.
const GO_WORDS: FieldNames = FieldNames {
    scale_up: "ScaleUp",
    scale_down: "ScaleDown",
    window: "StabilizationWindowSeconds",
    select: "SelectPolicy",
    policies: "Policies",
    tolerance: "Tolerance",
    kind: "Type",
    value: "Value",
    period: "PeriodSeconds",
};

/// The longest stabilization window, and the longest period of a policy, in seconds.
const WINDOW_MAX: i64 = 3600;
const PERIOD_MAX: i64 = 1800;

/// Both directions; one that is not written has the defaults, and so has each field that is not.
pub(super) fn read(
    node: &DocumentNode,
    place: &str,
    version: HpaApiVersion,
    findings: &mut Findings,
) -> Option<Behavior> {
    let (words, spelling) = match version {
        HpaApiVersion::V1 => (&GO_WORDS, Spelling::AnyCase),
        HpaApiVersion::V2beta1 | HpaApiVersion::V2beta2 | HpaApiVersion::V2 => (&API_WORDS, Spelling::Exact),
    };
    let mut fields = DocumentFields::of(node, place, spelling, findings)?;
    let reader = RulesReader { words, version };
    let scale_up = match fields.fields(words.scale_up, findings) {
        Some(rules) => reader.read(rules, ScalingRules::default_up(), findings),
        None => ScalingRules::default_up(),
    };
    let scale_down = match fields.fields(words.scale_down, findings) {
        Some(rules) => reader.read(rules, ScalingRules::default_down(), findings),
        None => ScalingRules::default_down(),
    };
    fields.finish(findings);
    Some(Behavior { scale_up, scale_down })
}

struct RulesReader {
    words: &'static FieldNames,
    version: HpaApiVersion,
}

impl RulesReader {
    fn read(
        &self,
        mut fields: DocumentFields<'_>,
        default: ScalingRules,
        findings: &mut Findings,
    ) -> ScalingRules {
        let words = self.words;
        let mut rules = ScalingRules { origin: RulesOrigin::Document, ..default };
        if let Some(window) = fields.seconds(words.window, 0, WINDOW_MAX, findings) {
            rules.stabilization_window = Some(window);
        }
        let select_place = fields.place(words.select);
        match fields.text(words.select, findings) {
            None => {}
            Some("Max") => rules.select_policy = SelectPolicy::Max,
            Some("Min") => rules.select_policy = SelectPolicy::Min,
            Some("Disabled") => rules.select_policy = SelectPolicy::Disabled,
            Some(other) => {
                let other = DocumentNode::Text(other.to_owned());
                findings.refuse(&select_place, &other, "is no way to select; write Max, Min or Disabled");
            }
        }
        let policies_place = fields.place(words.policies);
        if let Some(policies) = fields.list(words.policies, findings) {
            if policies.is_empty() {
                let flaw = "is empty; write at least one policy, or remove it for the default ones";
                findings.refuse_place(&policies_place, flaw);
            }
            let read = policies.iter().enumerate();
            rules.policies = read
                .filter_map(|(index, node)| {
                    self.policy(node, &format!("{policies_place}[{index}]"), findings)
                })
                .collect();
        }
        rules.tolerance = self.tolerance(&mut fields, findings);
        fields.finish(findings);
        rules
    }

    fn policy(&self, node: &DocumentNode, place: &str, findings: &mut Findings) -> Option<ScalingPolicy> {
        let words = self.words;
        let spelling = if self.version == HpaApiVersion::V1 { Spelling::AnyCase } else { Spelling::Exact };
        let mut fields = DocumentFields::of(node, place, spelling, findings)?;
        let kind = fields.required_text(words.kind, "Pods or Percent", findings);
        let before = findings.problems.len();
        let value = fields.integer(words.value, 1, i64::from(i32::MAX), findings);
        let period = fields.seconds(words.period, 1, PERIOD_MAX, findings);
        for (name, is_there, allowed) in [
            (words.value, value.is_some(), "a whole number from 1 to 2147483647"),
            (words.period, period.is_some(), "a whole number from 1 to 1800"),
        ] {
            if !is_there
                && !findings.problems[before..].iter().any(|problem| problem.key == fields.place(name))
            {
                findings.refuse_place(&fields.place(name), &format!("is missing; write {allowed}"));
            }
        }
        let kind_place = fields.place(words.kind);
        fields.finish(findings);
        let amount = match kind? {
            "Pods" => PolicyAmount::Pods(value?),
            "Percent" => PolicyAmount::Percent(value?),
            other => {
                let other = DocumentNode::Text(other.to_owned());
                findings.refuse(&kind_place, &other, "is no kind of policy; write Pods or Percent");
                return None;
            }
        };
        Some(ScalingPolicy { amount, period: period? })
    }

    /// A share, written as a quantity, of which not even a thousandth is lost.
    fn tolerance(&self, fields: &mut DocumentFields<'_>, findings: &mut Findings) -> Option<f64> {
        // `v2beta2` ended before there was one, and does not know the word.
        if self.version == HpaApiVersion::V2beta2 {
            return None;
        }
        let place = fields.place(self.words.tolerance);
        let node = fields.take(self.words.tolerance)?;
        let tolerance = double(node, &place, findings)?;
        if tolerance < 0.0 {
            findings.refuse(&place, node, "is negative; write a quantity of at least 0, such as \"0.05\"");
            return None;
        }
        Some(tolerance)
    }
}
