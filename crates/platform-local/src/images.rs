//! How does the image of a container run on this machine? By podman or by docker, whose command lines are the
//! same where `ebb` uses them.
//!
//! Here are the words: which engine, which image, which arguments, and which container belongs to a process
//! that lives. `ebb pod` runs the container (`pod/engine_container.rs`); `ebb up` pulls its image first and
//! removes containers whose `ebb pod` was killed (`supervisor/image_keeper.rs`).

mod container_image;
mod container_run;
mod engine;
mod image_runtime;
mod owner;

pub(crate) use container_image::{ContainerImage, ContainerSecurity, PullPolicy};
pub(crate) use container_run::{ContainerRun, ProcessLimits};
pub use engine::{ImageEngine, ImageNetwork, ImageSettings, ImageSupport};
pub(crate) use image_runtime::{INSTANCE_LABEL, ImageRuntime, new_instance, prefix_of_containers};
pub(crate) use owner::{ContainerOwner, has_owner};
