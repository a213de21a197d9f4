//! Knative manifests for tests, written the way a person would write them.

use std::fmt::Write as _;

/// A Knative `Service` that runs a command or an image.
#[derive(Clone, Debug)]
pub struct Service {
    name: String,
    /// In the place of a command, whose words are arguments then.
    image: Option<String>,
    command: Vec<String>,
    annotations: Vec<(String, String)>,
    env: Vec<(String, String)>,
    spec: Vec<String>,
    container: Vec<String>,
    beside: Vec<(String, Vec<String>)>,
}

impl Service {
    /// A service that runs the test app.
    pub fn new(name: &str) -> Self {
        Self::running(name, &[&crate::ebb::test_app()])
    }

    /// A service that runs this.
    pub fn running(name: &str, command: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            image: None,
            command: command.iter().map(ToString::to_string).collect(),
            annotations: Vec::new(),
            env: Vec::new(),
            spec: Vec::new(),
            container: Vec::new(),
            beside: Vec::new(),
        }
    }

    /// A service that runs an image with these arguments.
    pub fn of_image(name: &str, image: &str, arguments: &[&str]) -> Self {
        Self { image: Some(image.to_owned()), ..Self::running(name, arguments) }
    }

    /// Runs this command instead of the test's app.
    #[must_use]
    pub fn command(mut self, command: &[&str]) -> Self {
        self.command = command.iter().map(ToString::to_string).collect();
        self
    }

    /// Adds arguments to the app's command.
    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Self {
        self.command.extend(args.iter().map(ToString::to_string));
        self
    }

    /// Sets the annotation `autoscaling.knative.dev/KEY` of the service.
    #[must_use]
    pub fn scaling(self, key: &str, value: &str) -> Self {
        self.annotation(&format!("autoscaling.knative.dev/{key}"), value)
    }

    /// Sets an annotation of the template.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.annotations.retain(|(present, _)| present != key);
        self.annotations.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Sets an environment variable of the app.
    #[must_use]
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.env.retain(|(present, _)| present != key);
        self.env.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Adds a line to `spec.template.spec`, such as `containerConcurrency: 1`.
    #[must_use]
    pub fn spec(mut self, line: &str) -> Self {
        self.spec.push(line.to_owned());
        self
    }

    /// Adds lines to the container, such as a probe.
    #[must_use]
    pub fn container(mut self, lines: &str) -> Self {
        self.container.extend(lines.lines().map(str::to_owned));
        self
    }

    /// Adds a container of this name that runs this beside the first, which then needs a name and a port.
    #[must_use]
    pub fn beside(mut self, name: &str, command: &[&str]) -> Self {
        self.beside.push((name.to_owned(), command.iter().map(ToString::to_string).collect()));
        self
    }

    /// The name of the service in the manifest.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The Host under which it is served.
    pub fn host(&self) -> String {
        format!("{}.default.example.com", self.name)
    }

    /// The manifest of the service, as YAML.
    pub fn yaml(&self) -> String {
        let mut yaml = String::new();
        let mut line = |text: &str| {
            yaml.push_str(text);
            yaml.push('\n');
        };
        line("apiVersion: serving.knative.dev/v1");
        line("kind: Service");
        line("metadata:");
        line(&format!("  name: {}", self.name));
        line("spec:");
        line("  template:");
        if !self.annotations.is_empty() {
            line("    metadata:");
            line("      annotations:");
            for (key, value) in &self.annotations {
                line(&format!("        {key}: {value:?}"));
            }
        }
        line("    spec:");
        for extra in &self.spec {
            line(&format!("      {extra}"));
        }
        line("      containers:");
        match &self.image {
            Some(image) => {
                line(&format!("        - image: {image}"));
                line(&format!("          args: {:?}", self.command));
            }
            None => line(&format!("        - command: {:?}", self.command)),
        }
        if !self.env.is_empty() {
            line("          env:");
            for (name, value) in &self.env {
                line(&format!("            - name: {name}"));
                line(&format!("              value: {value:?}"));
            }
        }
        for extra in &self.container {
            line(&format!("          {extra}"));
        }
        for (name, command) in &self.beside {
            line(&format!("        - name: {name}"));
            line(&format!("          command: {command:?}"));
        }
        yaml
    }
}

/// The key for the class of Services that name none.
const CLASS_KEY: &str = "pod-autoscaler-class";

/// The ConfigMap `config-autoscaler` with the keys that a test sets.
#[derive(Clone, Debug, Default)]
pub struct ConfigMap(Vec<(String, String)>);

impl ConfigMap {
    /// Windows and periods as short as Knative allows, so that a test sees zero within seconds.
    pub fn short() -> Self {
        Self::default().set("stable-window", "6s").set("scale-to-zero-grace-period", "1s")
    }

    /// Sets a key of the ConfigMap.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.0.retain(|(present, _)| present != key);
        self.0.push((key.to_owned(), value.to_owned()));
        self
    }

    /// The manifest of the ConfigMap, as YAML. Services that name no class have that of `$EBB_TEST_CLASS`, if
    /// it is set: suites that are about no class run once with class ahpa.
    pub fn yaml(&self) -> String {
        let mut yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-autoscaler\n  namespace: ebb-system\ndata:\n".to_owned();
        let class = std::env::var("EBB_TEST_CLASS").ok().filter(|_| !self.sets(CLASS_KEY));
        let class = class.map(|class| (CLASS_KEY.to_owned(), class));
        for (key, value) in self.0.iter().chain(&class) {
            let _ = writeln!(yaml, "  {key}: {value:?}");
        }
        yaml
    }

    fn sets(&self, key: &str) -> bool {
        self.0.iter().any(|(present, _)| present == key)
    }
}
