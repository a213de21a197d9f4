//! Errors that are put around the core on purpose, to see that the checks find them.
//!
//! A check that finds nothing may be right, or blind. Each defect here is what an error of the core would
//! look like from outside; none of them changes the core, which runs between the wrappers as it is.

/// An error between the core and the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedDefect {
    /// The control loop takes in other words than were said.
    Hearing(HearingDefect),
    /// Other commands come out of the control loop than it gave.
    Command(CommandDefect),
    /// An activator does other things than its end of the protocol says.
    Activator(ActivatorDefect),
}

/// What is wrong with the words that a control loop takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HearingDefect {
    /// An assignment is taken for acknowledged as soon as it is sent.
    AcknowledgementInvented,
    /// Three of four seconds are cleared from the windows.
    LoadsCleared,
    /// Each request is counted twice.
    LoadsDoubled,
    /// A pod that is silent is taken for one without load.
    SilenceIsZero,
    /// A pod that starts is taken for ready.
    ReadyInvented,
    /// The word of a pod that it is ready is heard again after it has said another one.
    WordRepeatedLate,
}

/// What is wrong with the commands of a control loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandDefect {
    /// A count is one higher than decided, and its decision says so.
    CountTooHigh,
    /// A count is one lower than decided, and its decision says so.
    CountTooLow,
    /// A count is another one than its decision says.
    CountOutOfStep,
    /// A count is not ordered, one time of two.
    CountLost,
    /// A pod that leaves may end before any activator has heard of that.
    PodEndedEarly,
    /// A release after the time for acknowledgements is called acknowledged.
    ProofInvented,
    /// An assignment has the version of the one before.
    VersionReused,
    /// An assignment has the first version of its epoch.
    VersionFromStart,
    /// An assignment has the epoch of a former owner.
    EpochOfFormerOwner,
    /// An order has the epoch of the next owner.
    FenceInvented,
    /// An assignment is not sent, one time of three.
    AssignmentLost,
    /// An assignment names the pods of the one before.
    AssignmentStale,
    /// An activator is told that a revision is gone, one time of forty.
    RemovalInvented,
    /// No route is written at all.
    RouteLost,
    /// A route names an activator that does not exist.
    RouteToStranger,
    /// A pod is told its settings twice.
    PodSettingsRepeated,
    /// A sync names no revision.
    SyncEmptied,
}

/// What is wrong with an activator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivatorDefect {
    /// A request is sent to its pod twice, one time of thirty.
    GrantRepeated,
    /// A request that was granted is not sent, one time of thirty.
    GrantLost,
    /// A request is refused as if its revision were gone, one time of thirty.
    RefusalInvented,
    /// A version is acknowledged that is not in force yet.
    AcknowledgedAhead,
    /// The activator says that it holds nothing when it reports what it holds.
    EmptyInvented,
    /// An assignment of an earlier owner is put in force.
    LateOwnerObeyed,
    /// The loads of a second are said twice.
    SecondRepeated,
}

impl PlantedDefect {
    /// All defects; the checks must find each of them.
    pub const ALL: [Self; 30] = [
        Self::Hearing(HearingDefect::AcknowledgementInvented),
        Self::Hearing(HearingDefect::LoadsCleared),
        Self::Hearing(HearingDefect::LoadsDoubled),
        Self::Hearing(HearingDefect::SilenceIsZero),
        Self::Hearing(HearingDefect::ReadyInvented),
        Self::Hearing(HearingDefect::WordRepeatedLate),
        Self::Command(CommandDefect::CountTooHigh),
        Self::Command(CommandDefect::CountTooLow),
        Self::Command(CommandDefect::CountOutOfStep),
        Self::Command(CommandDefect::CountLost),
        Self::Command(CommandDefect::PodEndedEarly),
        Self::Command(CommandDefect::ProofInvented),
        Self::Command(CommandDefect::VersionReused),
        Self::Command(CommandDefect::VersionFromStart),
        Self::Command(CommandDefect::EpochOfFormerOwner),
        Self::Command(CommandDefect::FenceInvented),
        Self::Command(CommandDefect::AssignmentLost),
        Self::Command(CommandDefect::AssignmentStale),
        Self::Command(CommandDefect::RemovalInvented),
        Self::Command(CommandDefect::RouteLost),
        Self::Command(CommandDefect::RouteToStranger),
        Self::Command(CommandDefect::PodSettingsRepeated),
        Self::Command(CommandDefect::SyncEmptied),
        Self::Activator(ActivatorDefect::GrantRepeated),
        Self::Activator(ActivatorDefect::GrantLost),
        Self::Activator(ActivatorDefect::RefusalInvented),
        Self::Activator(ActivatorDefect::AcknowledgedAhead),
        Self::Activator(ActivatorDefect::EmptyInvented),
        Self::Activator(ActivatorDefect::LateOwnerObeyed),
        Self::Activator(ActivatorDefect::SecondRepeated),
    ];
}
