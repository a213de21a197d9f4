//! The present data of a ConfigMap. Kubernetes mounts it as a folder with a file for each key, so no program
//! needs the right to read it.
//!
//! Kubelet writes each version into a folder of its own and then turns the link `..data` to that. One version
//! is read as a whole: through the link once, and not once for each key. What cannot be used is told, and the
//! last good settings stay.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use anyhow::Context;
use tokio::sync::watch;
use vocabulary::Problem;

/// How often the folder is looked at. Kubernetes itself takes about a minute to change it.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Under kubelet's name for it the present version is found.
const PRESENT_VERSION: &str = "..data";

/// Reads settings out of the data of a ConfigMap. Returns every problem at once.
type ReadSettings<Settings> = fn(&BTreeMap<String, String>) -> Result<Settings, Vec<Problem>>;

/// A ConfigMap that is mounted as a folder, and the function that reads its keys.
#[derive(Debug)]
pub struct MountedSettings<Settings> {
    config_map: &'static str,
    folder: PathBuf,
    read: ReadSettings<Settings>,
    /// The result of the last look into the folder.
    last: Option<SettingsLook>,
}

/// The result of one look into the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SettingsLook {
    Read(BTreeMap<String, String>),
    Failed(String),
}

/// The meaning of a look that differs from the look before.
#[derive(Debug, PartialEq)]
enum SettingsNews<Settings> {
    Usable(Settings),
    /// The data cannot be used, for these reasons.
    Refused(Vec<String>),
}

impl<Settings: Default> MountedSettings<Settings> {
    /// The ConfigMap of that name, in this folder.
    pub fn new(config_map: &'static str, folder: PathBuf, read: ReadSettings<Settings>) -> Self {
        Self { config_map, folder, read, last: None }
    }

    /// The present settings (the defaults, if they cannot be read), and a future that follows later ones. Run
    /// it as a task.
    pub fn follow(mut self) -> (watch::Receiver<Settings>, impl Future<Output = ()>) {
        let (settings_in, settings) = watch::channel(Settings::default());
        self.take_into(&settings_in);
        let following = async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                self.take_into(&settings_in);
            }
        };
        (settings, following)
    }

    fn take_into(&mut self, settings_in: &watch::Sender<Settings>) {
        let config_map = self.config_map;
        match self.look() {
            None => {}
            Some(SettingsNews::Usable(settings)) => {
                tracing::info!(config_map, "the settings of the cluster were read");
                settings_in.send_replace(settings);
            }
            Some(SettingsNews::Refused(reasons)) => {
                for reason in reasons {
                    tracing::warn!(
                        config_map,
                        %reason,
                        "the settings of the cluster are of no use; the last good ones stay in force"
                    );
                }
            }
        }
    }

    fn look(&mut self) -> Option<SettingsNews<Settings>> {
        let found = match read(&self.folder) {
            Ok(data) => SettingsLook::Read(data),
            Err(error) => SettingsLook::Failed(format!("{error:#}")),
        };
        if self.last.as_ref() == Some(&found) {
            return None;
        }
        let news = match &found {
            // What is worth a word (`warnings`) is told by autoscalers, which read the same.
            SettingsLook::Read(data) => match (self.read)(data) {
                Ok(settings) => SettingsNews::Usable(settings),
                Err(problems) => {
                    SettingsNews::Refused(problems.into_iter().map(|problem| problem.message).collect())
                }
            },
            SettingsLook::Failed(why) => SettingsNews::Refused(vec![why.clone()]),
        };
        self.last = Some(found);
        Some(news)
    }
}

/// Reads one version: each key with its value.
fn read(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let version = match fs::canonicalize(folder.join(PRESENT_VERSION)) {
        Ok(version) => version,
        // A program other than kubelet wrote the file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => folder.to_owned(),
        Err(error) => return Err(error).with_context(|| format!("reading {}", folder.display())),
    };
    let mut data = BTreeMap::new();
    let entries = fs::read_dir(&version).with_context(|| format!("reading {}", version.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("reading {}", version.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A key of a ConfigMap has no other form; these are kubelet's own.
        if name.starts_with("..") {
            continue;
        }
        let value = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        data.insert(name, value);
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// As kubelet writes a version, and turns to it.
    fn mount(folder: &Path, version: &str, data: &[(&str, &str)]) {
        let own = folder.join(version);
        fs::create_dir(&own).expect("it can be made");
        for (key, value) in data {
            fs::write(own.join(key), value).expect("it can be written");
            let link = folder.join(key);
            if link.symlink_metadata().is_err() {
                symlink(Path::new(PRESENT_VERSION).join(key), link).expect("it can be linked");
            }
        }
        let next = folder.join("..data_tmp");
        symlink(version, &next).expect("it can be linked");
        fs::rename(next, folder.join(PRESENT_VERSION)).expect("it can be turned to");
    }

    /// Reads settings that have one key, a number.
    fn read_number(data: &BTreeMap<String, String>) -> Result<u32, Vec<Problem>> {
        let Some(text) = data.get("number") else { return Ok(0) };
        let problem = |part: &str| Problem { key: "number".to_owned(), message: format!("{part} {text:?}") };
        text.parse().map_err(|_| vec![problem("no number:"), problem("write digits, not")])
    }

    fn mounted(folder: &Path) -> MountedSettings<u32> {
        MountedSettings::new("config-test", folder.to_owned(), read_number)
    }

    #[tokio::test(start_paused = true)]
    async fn an_edit_is_followed_without_a_restart_and_a_broken_one_leaves_the_last_good_settings() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (settings, following) = mounted(folder.path()).follow();
        tokio::spawn(following);
        assert_eq!(*settings.borrow(), 0, "a ConfigMap that is not there sets nothing");
        for (version, text, expected) in [("..1", "20", 20), ("..2", "soon", 20), ("..3", "30", 30)] {
            mount(folder.path(), version, &[("number", text), ("_example", "number: 1")]);
            tokio::time::sleep(LOOK_EVERY * 2).await;
            assert_eq!(*settings.borrow(), expected, "{version}");
        }
    }

    #[test]
    fn everything_that_is_refused_is_named_once() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        mount(folder.path(), "..1", &[("number", "soon")]);
        let mut mounted = mounted(folder.path());
        let reasons = ["no number: \"soon\"", "write digits, not \"soon\""].map(str::to_owned);
        assert_eq!(mounted.look(), Some(SettingsNews::Refused(reasons.to_vec())));
        assert_eq!(mounted.look(), None, "it was told");
        mount(folder.path(), "..2", &[]);
        assert_eq!(mounted.look(), Some(SettingsNews::Usable(0)));
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let Some(SettingsNews::Refused(reasons)) = mounted("/nowhere/at/all".as_ref()).look() else {
            panic!("it is not there")
        };
        assert!(reasons[0].contains("/nowhere/at/all"), "{reasons:?}");
    }
}
