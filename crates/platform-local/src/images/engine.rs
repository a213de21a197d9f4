//! Which program runs container images, and in which network?

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::executable::is_executable;

/// A program that runs container images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageEngine {
    /// Podman, which needs no service: the container is a process of this user.
    Podman,
    /// Docker, whose service runs the container.
    Docker,
}

impl ImageEngine {
    /// Both engines, in the order in which they are looked for.
    const ALL: [Self; 2] = [Self::Podman, Self::Docker];

    /// The name of the program, as a person would call it.
    pub fn program(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }

    /// Whether the program is in a folder of `$PATH`.
    pub fn is_installed(self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| is_executable(&folder.join(self.program())))
    }

    /// The words by which it removes containers at once, running or not, with the volumes that they made. The
    /// names follow.
    pub(crate) fn removal(self) -> &'static [&'static str] {
        match self {
            // Without a time podman waits ten seconds for the end of a container that runs.
            Self::Podman => &["rm", "--force", "--volumes", "--time", "0"],
            Self::Docker => &["rm", "--force", "--volumes"],
        }
    }
}

impl fmt::Display for ImageEngine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.program())
    }
}

/// Whether container images run on this machine, and by which program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageSupport {
    /// This engine runs them here.
    By(ImageEngine),
    /// Neither engine is in `$PATH`.
    #[default]
    NotFound,
    /// A person does not want images to run.
    Off,
}

impl ImageSupport {
    /// By the engine that is in `$PATH`; podman where both are.
    pub fn found() -> Self {
        let installed = ImageEngine::ALL.into_iter().find(|engine| engine.is_installed());
        installed.map_or(Self::NotFound, Self::By)
    }

    /// The engine that runs images, if one does.
    pub(crate) fn engine(self) -> Option<ImageEngine> {
        match self {
            Self::By(engine) => Some(engine),
            Self::NotFound | Self::Off => None,
        }
    }
}

/// The network that containers are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageNetwork {
    /// A network of its own where the engine can make one, else the host's.
    #[default]
    Auto,
    /// A network of its own, of which the container's port is published at 127.0.0.1.
    Bridge,
    /// The network of the host; the container listens on `$PORT`.
    Host,
}

impl ImageNetwork {
    /// The word for it on command lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Bridge => "bridge",
            Self::Host => "host",
        }
    }
}

/// How container images run on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageSettings {
    /// Whether they run, and by which program.
    pub support: ImageSupport,
    /// The network that their containers are in.
    pub network: ImageNetwork,
}
