//! Which of Knative's programs are ebb's by now, and may they stand side by side?

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};

use crate::check::findings::CheckFinding;

/// The variable by which ebb's programs know that they stand in Knative's place.
const PROFILE: (&str, &str) = ("EBB_PROFILE", "knative");

/// The project that a program comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramMaker {
    Ebb,
    Knative,
}

/// A Deployment that is Knative's or ebb's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstalledProgram {
    /// `None` where there is no such Deployment.
    pub(crate) maker: Option<ProgramMaker>,
    pub(crate) replicas: i32,
    pub(crate) ready: i32,
}

impl InstalledProgram {
    /// Reads a Deployment as the API server has it, if it is there.
    pub(crate) fn read(found: Option<&Deployment>) -> Self {
        let Some(found) = found else { return Self { maker: None, replicas: 0, ready: 0 } };
        let spec = found.spec.as_ref();
        let template = spec.and_then(|spec| spec.template.spec.as_ref());
        let containers = template.iter().flat_map(|pod| &pod.containers);
        let mut variables = containers.flat_map(|container| container.env.iter().flatten());
        let is_ebb = variables
            .any(|variable| variable.name == PROFILE.0 && variable.value.as_deref() == Some(PROFILE.1));
        Self {
            maker: Some(if is_ebb { ProgramMaker::Ebb } else { ProgramMaker::Knative }),
            replicas: spec.and_then(|spec| spec.replicas).unwrap_or(1),
            ready: found.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default(),
        }
    }
}

/// The verdict about a program of Knative's that stays.
pub(crate) fn kept(
    name: &str,
    without: &str,
    found: &Result<Option<Deployment>, kube::Error>,
) -> CheckFinding {
    let what = format!("deployment/{name} is ready");
    let program = match found {
        Err(error) => return CheckFinding::unknown(what, error.to_string()),
        Ok(found) => InstalledProgram::read(found.as_ref()),
    };
    CheckFinding::of(program.ready > 0, what, || {
        format!("it has no ready pod: {without}; its pods' logs and `kubectl describe` say why")
    })
}

/// The verdict about autoscaler and activator beside each other.
pub(crate) fn mixture(autoscaler: InstalledProgram, activator: InstalledProgram) -> CheckFinding {
    use ProgramMaker::{Ebb, Knative};
    let (Some(decider), Some(proxy)) = (autoscaler.maker, activator.maker) else {
        let advice = "one of the Deployments autoscaler and activator is missing; apply Knative's manifest";
        return CheckFinding::wrong("autoscaler and activator are there".to_owned(), advice.to_owned());
    };
    let what = match (decider, proxy) {
        (Knative, Knative) => "autoscaler and activator are Knative's: ebb may come in",
        (Ebb, Knative) => "the autoscaler is ebb's, beside Knative's activators",
        (Ebb, Ebb) => "autoscaler and activator are ebb's",
        (Knative, Ebb) => "autoscaler and activator may stand side by side",
    };
    let what = what.to_owned();
    match (decider, proxy) {
        (Knative, Ebb) => CheckFinding::wrong(
            what,
            "ebb's activators know nothing from Knative's autoscaler; apply deploy/knative again, or Knative's manifest whole".to_owned(),
        ),
        (Ebb, Knative) if autoscaler.replicas != 1 => CheckFinding::wrong(
            what,
            format!(
                "it has {} replicas, and a load that Knative's activators push to another one than the owner is lost; `kubectl scale deployment/autoscaler --replicas=1`",
                autoscaler.replicas
            ),
        ),
        _ if autoscaler.ready == 0 => CheckFinding::wrong(
            what,
            "no autoscaler is ready, so no count changes; `kubectl logs deployment/autoscaler` says why".to_owned(),
        ),
        (Ebb, Ebb) if activator.ready == 0 => CheckFinding::wrong(
            what,
            "no activator is ready, so what waits at zero is not answered; `kubectl logs deployment/activator` says why".to_owned(),
        ),
        (Ebb | Knative, Knative) | (Ebb, Ebb) => CheckFinding::well(what),
    }
}

/// The verdict about the form of Knative's election that has no Leases.
pub(crate) fn election_form(found: Result<Option<StatefulSet>, kube::Error>) -> CheckFinding {
    let what = "autoscalers agree by Leases".to_owned();
    match found {
        Err(error) => CheckFinding::unknown(what, error.to_string()),
        Ok(None) => CheckFinding::well(what),
        Ok(Some(_)) => CheckFinding::wrong(
            what,
            "a StatefulSet autoscaler shares revisions by the numbers of its pods, which ebb cannot stand beside; go back to the Deployment of Knative's manifest".to_owned(),
        ),
    }
}

/// The finding about revisions of class hpa.
pub(crate) fn class_hpa(is_installed: bool) -> CheckFinding {
    let what = "revisions of class hpa are scaled by deployment/autoscaler-hpa".to_owned();
    if is_installed {
        return CheckFinding::well(what);
    }
    CheckFinding::remark(what, "it is not there: revisions of that class keep their count".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::check::findings::tests::text_of;

    fn program(environment: &Value, replicas: i32) -> InstalledProgram {
        let deployment = json!({
            "spec": {
                "replicas": replicas,
                "selector": {},
                "template": {"spec": {"containers": [{"name": "autoscaler", "env": environment}]}},
            },
            "status": {"readyReplicas": 1},
        });
        InstalledProgram::read(Some(&serde_json::from_value(deployment).expect("a Deployment")))
    }

    fn ebb(replicas: i32) -> InstalledProgram {
        program(&json!([{"name": "EBB_PROFILE", "value": "knative"}]), replicas)
    }

    fn knative() -> InstalledProgram {
        program(&json!([{"name": "POD_NAME", "value": "x"}]), 2)
    }

    /// The rows of the contract's §7.1.
    #[test]
    fn ebbs_activators_stand_beside_no_autoscaler_of_knatives() {
        let of = |autoscaler, activator| text_of(mixture(autoscaler, activator));
        assert!(of(knative(), knative()).contains("ok "));
        assert!(of(ebb(1), knative()).contains("ok "));
        assert!(of(ebb(3), ebb(2)).contains("ok "));
        assert!(of(knative(), ebb(2)).contains("WRONG"));
        let several = of(ebb(2), knative());
        assert!(several.contains("WRONG") && several.contains("--replicas=1"), "{several}");
        assert!(of(ebb(1), InstalledProgram::read(None)).contains("is missing"));
        let down = InstalledProgram { ready: 0, ..ebb(1) };
        assert!(of(down, knative()).contains("no autoscaler is ready"));
        let silent = InstalledProgram { ready: 0, ..ebb(2) };
        assert!(of(ebb(1), silent).contains("no activator is ready"));
    }

    #[test]
    fn a_program_without_a_ready_pod_is_told_with_its_effect() {
        let finding = |found| text_of(kept("webhook", "nothing is written", &Ok(found)));
        let absent = finding(None);
        assert!(
            absent.contains("WRONG    deployment/webhook is ready\n           it has no ready"),
            "{absent}"
        );
        let ready = json!({"status": {"readyReplicas": 2}});
        let ready = serde_json::from_value(ready).expect("a Deployment");
        assert!(finding(Some(ready)).contains("ok       deployment/webhook"));
    }

    #[test]
    fn an_election_without_leases_is_refused_by_name() {
        assert!(text_of(election_form(Ok(None))).contains("ok "));
        let refused = text_of(election_form(Ok(Some(StatefulSet::default()))));
        assert!(refused.contains("WRONG") && refused.contains("StatefulSet autoscaler"), "{refused}");
    }
}
