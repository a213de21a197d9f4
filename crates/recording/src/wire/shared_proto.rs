//! The protobuf messages that facts and answers share.

use prost::Message;

/// A message that says all by its presence.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct NothingMessage {}

/// The resources that a pod requests.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PodRequestsMessage {
    #[prost(message, optional, tag = "1")]
    pub pod_level: Option<AmountsMessage>,
    #[prost(message, repeated, tag = "2")]
    pub containers: Vec<ContainerMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ContainerMessage {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub requests: Option<AmountsMessage>,
}

/// Amounts of resources, in thousandths.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AmountsMessage {
    #[prost(sint64, optional, tag = "1")]
    pub cpu: Option<i64>,
    #[prost(sint64, optional, tag = "2")]
    pub memory: Option<i64>,
    #[prost(message, repeated, tag = "3")]
    pub others: Vec<AmountMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AmountMessage {
    #[prost(string, tag = "1")]
    pub resource: String,
    #[prost(sint64, tag = "2")]
    pub amount: i64,
}
