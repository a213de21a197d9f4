//! The configuration of class hpa: the document of a horizontal pod autoscaler in every spelling of it, and
//! the cluster's settings that apply to all documents.

mod behavior;
pub mod reading;
mod requests;
mod scaling;
mod selector;
mod settings;
mod spec;
mod writing;

pub use self::behavior::{Behavior, PolicyAmount, RulesOrigin, ScalingPolicy, ScalingRules, SelectPolicy};
pub use self::requests::{ContainerRequests, PodRequests, ResourceRequests};
pub use self::scaling::{HpaScaling, UsageSource};
pub use self::selector::{LabelCondition, LabelRequirement, LabelSelector};
pub use self::settings::HpaSettings;
pub use self::spec::{
    HpaSpec, MetricGoal, MetricIdentifier, MetricSpec, ObjectReference, ResourceName, ResourceTarget,
    TotalTarget,
};
pub use self::writing::{spec_of, yaml_of};
