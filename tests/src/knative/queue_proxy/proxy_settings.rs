//! What the controller says to a queue-proxy: the environment of contract §6.1.

use std::time::Duration;

use anyhow::Context as _;

use super::app_probe::AppProbe;

/// The settings of a queue-proxy.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ControllerEnvironment {
    pub(super) port: u16,
    pub(super) user_port: u16,
    /// The most requests in the app at once; 0 means no limit.
    pub(super) limit: usize,
    pub(super) timeout: Duration,
    pub(super) pod: String,
    pub(super) probe: AppProbe,
}

impl ControllerEnvironment {
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let text = |name: &str| variable(name).with_context(|| format!("{name} is not set"));
        let number = |name: &str| -> anyhow::Result<u64> {
            text(name)?.parse().with_context(|| format!("{name} is no number"))
        };
        Ok(Self {
            port: u16::try_from(number("QUEUE_SERVING_PORT")?)?,
            user_port: u16::try_from(number("USER_PORT")?)?,
            limit: usize::try_from(number("CONTAINER_CONCURRENCY")?)?,
            timeout: Duration::from_secs(number("REVISION_TIMEOUT_SECONDS")?),
            pod: text("SERVING_POD")?,
            probe: AppProbe::read(&text("SERVING_READINESS_PROBE")?)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_read_and_what_is_missing_is_named() {
        let known = [
            ("QUEUE_SERVING_PORT", "8012"),
            ("USER_PORT", "8080"),
            ("CONTAINER_CONCURRENCY", "0"),
            ("REVISION_TIMEOUT_SECONDS", "300"),
            ("SERVING_POD", "hello-00001-deployment-x"),
            ("SERVING_READINESS_PROBE", r#"{"tcpSocket": {"host": "127.0.0.1", "port": 8080}}"#),
        ];
        let read = |left_out: &str| {
            ControllerEnvironment::read(|name| {
                let found = known.iter().find(|(known, _)| *known == name && *known != left_out)?;
                Some(found.1.to_owned())
            })
        };
        let settings = read("").expect("all is there");
        assert_eq!((settings.port, settings.user_port, settings.timeout.as_secs()), (8012, 8080, 300));
        for (name, _) in known {
            let error = read(name).expect_err("one is missing").to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
