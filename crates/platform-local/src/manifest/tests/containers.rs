//! Several containers in one pod.

use super::*;

/// The minimal Service with a name and a port, and another container.
fn beside(lines: &str) -> String {
    let app = in_container("name: web\nports: [{containerPort: 8080}]");
    format!("{app}        - name: cache\n{}", indented(lines, 10))
}

#[test]
fn the_container_with_the_port_is_the_app_and_the_others_run_beside_it() {
    let (service, warnings) = the_service(&beside(
        "command: [cached, --port, $(PORT)]\nenv: [{name: SIZE, value: \"1\"}]\nworkingDir: .",
    ));
    assert_eq!(warnings, [""; 0]);
    let template = service.template;
    assert_eq!(template.app.name.as_deref(), Some("web"));
    assert_eq!(template.app.command, ["ebb", "sample-app"]);
    let [cache] = &template.sidecars[..] else { panic!("{:?}", template.sidecars) };
    assert_eq!((cache.name.as_deref(), cache.env.len()), (Some("cache"), 1));
    assert_eq!(cache.command, ["cached", "--port", "$(PORT)"]);
    assert!(cache.directory.is_some());
    // In whatever order they stand.
    let swapped = MINIMAL.replace(
        "        - command: [\"ebb\", \"sample-app\"]\n",
        "        - {name: cache, command: [sh]}\n        - {name: web, command: [sh], ports: [{containerPort: 1}]}\n",
    );
    let (service, _) = the_service(&swapped);
    assert_eq!(service.template.app.name.as_deref(), Some("web"));
}

#[test]
fn one_container_has_no_need_of_a_name_and_a_name_changes_nothing() {
    let (unnamed, _) = the_service(MINIMAL);
    let (named, _) = the_service(&in_container("name: web"));
    assert_eq!(unnamed.template.app.name, None);
    assert_eq!(named.template.app.name, None, "or an upgrade would roll every pod");
}

#[test]
fn refused_of_several_containers() {
    let mut many = String::new();
    for number in 0..17 {
        writeln!(many, "        - {{name: s{number}, command: [sh]}}").expect("a string");
    }
    let app = in_container("name: web\nports: [{containerPort: 8080}]");
    let rows = [
        ("two ports", beside("command: [sh]\nports: [{containerPort: 1}]")),
        (
            "no port",
            format!("{MINIMAL}        - {{name: b, command: [sh]}}\n")
                .replace("- command", "- name: a\n          command"),
        ),
        ("no name", format!("{app}        - command: [sh]\n")),
        ("one name", beside("command: [sh]").replace("name: cache", "name: web")),
        ("a name that is none", beside("command: [sh]").replace("name: cache", "name: Cache_1")),
        (
            "a probe",
            beside(
                "command: [sh]\nlivenessProbe: {tcpSocket: {port: 1}}\nreadinessProbe: {exec: {command: [x]}}",
            ),
        ),
        ("no command", beside("image: x")),
        ("too many", format!("{app}{many}")),
        ("misspelt", beside("command: [sh]\nargz: []")),
    ];
    insta::assert_snapshot!("refused_of_containers", table(&rows));
}

#[test]
fn limits_of_each_container_arrive() {
    let text = beside("command: [sh]\nresources: {limits: {memory: 64Mi, cpu: 1500m}}");
    let (service, _) = the_service(&text.replace(
        "          ports: [{containerPort: 8080}]\n",
        "          ports: [{containerPort: 8080}]\n          resources: {requests: {cpu: 100m, memory: 1Gi}}\n",
    ));
    let limits = |container: &crate::pod::Container| {
        let limits = container.limits;
        (limits.memory_bytes, limits.cpu_milli, limits.cpu_request_milli)
    };
    assert_eq!(limits(&service.template.app), (None, None, Some(100)));
    assert_eq!(limits(&service.template.sidecars[0]), (Some(64 << 20), Some(1500), Some(1500)));
    let (none, _) = the_service(&in_container("resources: {limits: {memory: \"0\"}}"));
    assert_eq!(limits(&none.template.app), (None, None, None), "0 is no limit, as on a cluster");
}
