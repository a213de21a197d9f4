//! A file that holds all that a simulation takes: `kind: Simulation`. docs/tasks/simulate.md has its fields.
//!
//! Each value is read as the option of the same meaning is, so that a text means the same in both places.
//! Every problem is told, with the line on which the value stands.

use std::path::{Path, PathBuf};
use std::time::Duration;

use platform_local::{YamlKey, YamlNode, YamlValue, read_yaml};
use simulator::{LoadSource, ServiceLoad, SimulationPace};
use vocabulary::{did_you_mean, shown};

use crate::cli::simulation::{
    DEFAULT_SEED, bin, cores, fault, objective, service_load, time_distribution, variant,
};
use crate::cli::{
    ImageArguments, LengthOptions, ManifestOptions, ReadingOptions, ScenarioOptions, SimulateOptions,
};

const KIND: &str = "Simulation";
/// More text than a scenario needs.
const BYTES_MAX: u64 = 1 << 20;

/// The fields of a scenario, in the order of the documentation.
const FIELDS: [&str; 18] = [
    "kind",
    "manifests",
    "domain",
    "ignoreForeign",
    "loads",
    "record",
    "bin",
    "serviceTime",
    "startUp",
    "cores",
    "faults",
    "minutes",
    "hours",
    "days",
    "seed",
    "fast",
    "compare",
    "objective",
];

/// What a scenario file and the command line beside it say; or every problem of the file.
pub(super) fn read(options: &ScenarioOptions) -> Result<SimulateOptions, Vec<String>> {
    let name = options.path.display().to_string();
    let told = |problem: String| vec![format!("{name}: {problem}")];
    let size = std::fs::metadata(&options.path).map_err(|error| told(error.to_string()))?.len();
    if size > BYTES_MAX {
        return Err(told(format!("the file is longer than {BYTES_MAX} bytes, the most that is read")));
    }
    let text = std::fs::read_to_string(&options.path).map_err(|error| told(error.to_string()))?;
    options_in(&text, &name, options)
}

fn options_in(text: &str, name: &str, options: &ScenarioOptions) -> Result<SimulateOptions, Vec<String>> {
    let mut documents = read_yaml(text).map_err(|error| {
        let place = error.place.map(|(line, _)| format!(" at line {line}")).unwrap_or_default();
        vec![format!("{name}: it is not YAML: {}{place}", error.message)]
    })?;
    if documents.len() > 1 {
        return Err(vec![format!("{name}: it has {} documents; write one", documents.len())]);
    }
    let Some(YamlNode { value: YamlValue::Map(fields), .. }) = documents.pop() else {
        return Err(vec![format!(
            "{name}: it is no mapping; write kind: {KIND} and the fields of a simulation"
        )]);
    };
    let mut reader = ScenarioReader { name, fields, problems: Vec::new() };
    reader.check_names();
    let read = reader.options(options);
    if reader.problems.is_empty() { Ok(read) } else { Err(reader.problems) }
}

/// Takes the fields of a scenario one by one, and notes what is wrong with them.
struct ScenarioReader<'t> {
    /// How messages call the file.
    name: &'t str,
    fields: Vec<(YamlKey, YamlNode)>,
    problems: Vec<String>,
}

impl ScenarioReader<'_> {
    fn refuse(&mut self, line: u64, problem: &str) {
        self.problems.push(format!("{} line {line}: {problem}", self.name));
    }

    fn check_names(&mut self) {
        let names: Vec<YamlKey> = self.fields.iter().map(|(name, _)| name.clone()).collect();
        for YamlKey { place: (line, _), text: name } in names {
            if !FIELDS.contains(&name.as_str()) {
                let near = did_you_mean(&name, FIELDS);
                let problem =
                    format!("unknown field {}{near}; known are {}", shown(&name), FIELDS.join(", "));
                self.refuse(line, &problem);
            }
        }
        match self.text("kind") {
            Some(kind) if kind.text == KIND => {}
            Some(kind) => {
                self.refuse(kind.line, &format!("kind is {}; write {KIND}", shown(&kind.text)));
            }
            None => self.problems.push(format!("{}: kind is missing; write kind: {KIND}", self.name)),
        }
    }

    /// What is missing or wrong is noted; then the options mean nothing.
    fn options(&mut self, options: &ScenarioOptions) -> SimulateOptions {
        let folder = options.path.parent().unwrap_or(Path::new(""));
        let files = self.texts("manifests").into_iter().map(|file| folder.join(file.text)).collect();
        let files: Vec<PathBuf> = self.needed("manifests", "[service.yaml]", files);
        let record = self.text("record").map(|record| folder.join(record.text));
        let load = self.loads(folder);
        let load = if record.is_none() || self.node("loads").is_some() {
            self.needed("loads", "{hello: \"constant,rate=50rps\"}", load)
        } else {
            load
        };
        let service_time = self.parsed("serviceTime", time_distribution);
        let start_up = self.parsed("startUp", time_distribution);
        let compare = self.texts("compare");
        let compare = compare.iter().filter_map(|text| self.value_of("compare", text, variant)).collect();
        let faults = self.texts("faults");
        let faults = faults.iter().filter_map(|text| self.value_of("faults", text, fault)).collect();
        let length = self.length();
        if record.is_none() {
            self.required("serviceTime", "120ms", service_time.is_some());
            self.required("startUp", "2s", start_up.is_some());
            self.required("minutes, hours or days", "10", length.is_some());
        }
        let domain = self.text("domain").map_or_else(|| "example.com".to_owned(), |domain| domain.text);
        let ignore_foreign = self.parsed("ignoreForeign", truth).unwrap_or_default();
        let images = ImageArguments::default();
        let is_fast = self.parsed("fast", truth).unwrap_or_default();
        let seed = self.parsed("seed", |text| text.parse().map_err(|_| "write a whole number".to_owned()));
        SimulateOptions {
            manifests: ManifestOptions { files, reading: ReadingOptions { domain, ignore_foreign, images } },
            load,
            record,
            bin: self.parsed("bin", bin),
            cores: self.parsed("cores", cores),
            pace: if is_fast { SimulationPace::WholeSeconds } else { SimulationPace::EveryRequest },
            faults,
            service_time,
            start_up,
            length,
            compare,
            seed: options.seed.or(seed).unwrap_or(DEFAULT_SEED),
            objective: self.parsed("objective", objective),
            json: options.json.clone(),
            svg: options.svg.clone(),
            html: options.html.clone(),
        }
    }

    /// The loads by the names of their Services. A load that is a file lies beside the scenario.
    fn loads(&mut self, folder: &Path) -> Vec<ServiceLoad> {
        let Some(node) = self.node("loads") else { return Vec::new() };
        let YamlValue::Map(fields) = node.value else {
            self.refuse(node.place.0, "loads is no mapping; write loads: {NAME: SHAPE}");
            return Vec::new();
        };
        let mut loads = Vec::new();
        for (YamlKey { place: (line, _), text: name }, node) in fields {
            let Some(text) = single_value(&node.value) else {
                self.refuse(
                    line,
                    &format!("the load of {name} is no text; write a shape or the name of a file"),
                );
                continue;
            };
            match service_load(&format!("{name}={text}")) {
                Ok(load) => loads.push(beside(folder, load)),
                Err(problem) => self.refuse(line, &problem),
            }
        }
        loads
    }

    fn length(&mut self) -> Option<Duration> {
        let count = |text: &str| {
            let count = text.parse::<u32>().ok().filter(|count| (1..=527_040).contains(count));
            count.ok_or_else(|| "write a whole number from 1 on, of a year at most".to_owned())
        };
        let (minutes, hours, days) =
            (self.parsed("minutes", count), self.parsed("hours", count), self.parsed("days", count));
        let length = LengthOptions { minutes, hours, days };
        if [minutes, hours, days].into_iter().flatten().count() > 1 {
            let problem = format!("{}: more than one of minutes, hours and days; write one", self.name);
            self.problems.push(problem);
        }
        length.span()
    }

    /// Notes that a list is empty that is needed.
    fn needed<Item>(&mut self, field: &str, example: &str, list: Vec<Item>) -> Vec<Item> {
        match self.node(field) {
            Some(node) if list.is_empty() => {
                self.refuse(node.place.0, &format!("{field} is empty; write {field}: {example}"));
            }
            Some(_) => {}
            None => self.required(field, example, false),
        }
        list
    }

    /// Notes that a field is missing, unless a problem of it was noted already.
    fn required(&mut self, field: &str, example: &str, is_given: bool) {
        if !is_given && self.node(field).is_none() {
            self.problems.push(format!("{}: {field} is missing; write {field}: {example}", self.name));
        }
    }

    fn parsed<Value>(
        &mut self,
        field: &'static str,
        reader: impl Fn(&str) -> Result<Value, String>,
    ) -> Option<Value> {
        let text = self.text(field)?;
        self.value_of(field, &text, reader)
    }

    fn value_of<Value>(
        &mut self,
        field: &str,
        text: &PlacedText,
        reader: impl Fn(&str) -> Result<Value, String>,
    ) -> Option<Value> {
        match reader(&text.text) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.refuse(text.line, &format!("{field} is {}: {problem}", shown(&text.text)));
                None
            }
        }
    }

    fn node(&self, field: &str) -> Option<YamlNode> {
        self.fields.iter().find(|(name, _)| name.text == field).map(|(_, node)| node.clone())
    }

    fn text(&mut self, field: &str) -> Option<PlacedText> {
        let node = self.node(field)?;
        self.text_of(field, &node)
    }

    fn text_of(&mut self, field: &str, node: &YamlNode) -> Option<PlacedText> {
        let (line, _) = node.place;
        let text = single_value(&node.value);
        if text.is_none() {
            self.refuse(line, &format!("{field} has no single value; write one"));
        }
        text.map(|text| PlacedText { line, text })
    }

    /// The texts of a list, or the only one.
    fn texts(&mut self, field: &str) -> Vec<PlacedText> {
        match self.node(field) {
            None => Vec::new(),
            Some(YamlNode { value: YamlValue::List(items), .. }) => {
                items.iter().filter_map(|item| self.text_of(field, item)).collect()
            }
            Some(node) => self.text_of(field, &node).into_iter().collect(),
        }
    }
}

/// A text and the line on which it stands.
#[derive(Clone, Debug)]
struct PlacedText {
    line: u64,
    text: String,
}

/// The text of a value that is no list and no mapping. Numbers and words without quotes are texts too.
fn single_value(value: &YamlValue) -> Option<String> {
    match value {
        YamlValue::Text(text) => Some(text.clone()),
        YamlValue::Bool(value) => Some(value.to_string()),
        YamlValue::Integer(value) => Some(value.to_string()),
        YamlValue::Number(value) => Some(value.to_string()),
        YamlValue::Null | YamlValue::List(_) | YamlValue::Map(_) => None,
    }
}

fn truth(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

fn beside(folder: &Path, load: ServiceLoad) -> ServiceLoad {
    match load.source {
        LoadSource::Shape(_) => load,
        LoadSource::File(name) => {
            let source = LoadSource::File(folder.join(name).display().to_string());
            ServiceLoad { service: load.service, source }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "kind: Simulation\nmanifests: [svc.yaml]\nloads:\n  hello: constant,rate=50rps\n  other: day.csv\n\
                         bin: 1m\nserviceTime: 120ms,p99=800ms\nstartUp: 2s..5s\ncores: 2\nhours: 3\nseed: 9\nfast: true\n\
                         compare: [window=30s, \"min-scale=1,target=5\"]\nobjective: p99 wait < 200ms\n";

    fn read_text(text: &str) -> Result<SimulateOptions, Vec<String>> {
        let options = ScenarioOptions {
            path: PathBuf::from("folder/scenario.yaml"),
            seed: None,
            json: None,
            svg: None,
            html: None,
        };
        options_in(text, "scenario.yaml", &options)
    }

    #[test]
    fn every_field_is_read_as_its_option_is() {
        let options = read_text(WHOLE).expect("a good scenario");
        assert_eq!(options.manifests.files, [PathBuf::from("folder/svc.yaml")]);
        assert_eq!(options.load[0].service, "hello");
        assert_eq!(options.load[1].source, LoadSource::File("folder/day.csv".to_owned()));
        assert_eq!(options.bin, Some(Duration::from_secs(60)));
        assert_eq!(options.length, Some(Duration::from_secs(10_800)));
        assert_eq!((options.seed, options.compare.len()), (9, 2));
        assert_eq!(options.pace, SimulationPace::WholeSeconds);
        assert!(options.objective.is_some() && options.cores.is_some());
    }

    #[test]
    fn a_record_stands_for_loads_times_and_length() {
        let options = read_text("kind: Simulation\nmanifests: [svc.yaml]\nrecord: monday\n").expect("enough");
        assert_eq!(options.record, Some(PathBuf::from("folder/monday")));
        assert!(options.load.is_empty() && options.length.is_none() && options.start_up.is_none());
    }

    #[test]
    fn a_problem_names_file_line_value_and_what_is_allowed() {
        let changed = |from: &str, to: &str| WHOLE.replace(from, to);
        for (text, expected) in [
            (
                changed("startUp:", "startup:"),
                "scenario.yaml line 8: unknown field \"startup\"; did you mean startUp?",
            ),
            (changed("startUp:", "startup:"), "scenario.yaml: startUp is missing; write startUp: 2s"),
            (changed("kind: Simulation", "kind: Service"), "line 1: kind is \"Service\"; write Simulation"),
            (changed("kind: Simulation\n", ""), "scenario.yaml: kind is missing"),
            (
                changed("constant,rate", "constnt,rate"),
                "line 4: load of hello: \"constnt\" is none of constant",
            ),
            (changed("2s..5s", "5s..2s"), "line 8: startUp is \"5s..2s\": the range is"),
            (changed("cores: 2", "cores: 0"), "line 9: cores is \"0\": is no number of cores"),
            (changed("hours: 3", "hours: 0"), "line 10: hours is \"0\": write a whole number"),
            (changed("hours: 3", "hours: 3\ndays: 1"), "more than one of minutes, hours and days"),
            (changed("hours: 3\n", ""), "minutes, hours or days is missing"),
            (changed("seed: 9", "seed: x"), "line 11: seed is \"x\": write a whole number"),
            (changed("fast: true", "fast: 1"), "line 12: fast is \"1\": write true or false"),
            (changed("window=30s", "windw=30s"), "did you mean window?"),
            (changed("[svc.yaml]", "[]"), "scenario.yaml line 2: "),
            (changed("p99 wait", "p98 wait"), "is no objective"),
            (changed("  hello: constant,rate=50rps\n  other: day.csv\n", "  - a\n"), "loads is no mapping"),
            ("- a\n".to_owned(), "scenario.yaml: it is no mapping"),
            ("a: [\n".to_owned(), "scenario.yaml: it is not YAML"),
        ] {
            let problems = read_text(&text).expect_err(expected).join("\n");
            assert!(problems.contains(expected), "{expected:?} is missing in\n{problems}");
        }
    }

    #[test]
    fn faults_are_read_as_options_are_and_unknown_ones_are_refused_with_the_nearest() {
        let with = |faults: &str| read_text(&format!("{WHOLE}faults: {faults}\n"));
        let read = with("[\"takeover,at=1h\", \"activator-link-slow,at=2h,length=1m,delay=2s\"]");
        let expected = ["takeover,at=1h", "activator-link-slow,at=2h,length=1m,delay=2s"];
        let expected: Vec<_> = expected.map(|text| fault(text).expect(text)).into();
        assert_eq!(read.expect("two faults").faults, expected);
        let refused = with("[\"takover,at=1h\"]").expect_err("no such fault").join("\n");
        assert!(
            refused.contains("line 15: faults is \"takover,at=1h\": \"takover\" is none of"),
            "{refused}"
        );
        assert!(refused.contains("did you mean takeover?"), "{refused}");
    }

    #[test]
    fn all_problems_are_told_together() {
        let text = WHOLE.replace("2s..5s", "x").replace("120ms,p99=800ms", "y");
        assert_eq!(read_text(&text).expect_err("two problems").len(), 2);
    }
}
