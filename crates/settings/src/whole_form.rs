//! Settings whole, as an exact keyframe of a record has them.
//!
//! `Serialize` of these settings is that of the API, which leaves out what is too long for a reader or is
//! written elsewhere. A field of the control loop's state names this form instead
//! (`#[serde(with = "settings::whole_form")]`).

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cluster::ClusterConfig;
use crate::revision_settings::RevisionSettings;
use crate::spec::ScalingSpec;

/// Settings of which the API shows a part.
pub trait WholeForm: Sized {
    /// Writes the settings with every field.
    fn write<To: Serializer>(&self, to: To) -> Result<To::Ok, To::Error>;

    /// Reads settings that [`WholeForm::write`] has written.
    fn read<'de, Source: Deserializer<'de>>(from: Source) -> Result<Self, Source::Error>;
}

/// Writes settings with what the API leaves out.
pub fn serialize<Settings: WholeForm, To: Serializer>(
    settings: &Settings,
    to: To,
) -> Result<To::Ok, To::Error> {
    settings.write(to)
}

/// Reads settings that were written whole.
pub fn deserialize<'de, Settings: WholeForm, Source: Deserializer<'de>>(
    from: Source,
) -> Result<Settings, Source::Error> {
    Settings::read(from)
}

impl WholeForm for Arc<ClusterConfig> {
    fn write<To: Serializer>(&self, to: To) -> Result<To::Ok, To::Error> {
        (self, &self.texts).serialize(to)
    }

    fn read<'de, Source: Deserializer<'de>>(from: Source) -> Result<Self, Source::Error> {
        let (config, texts): (ClusterConfig, _) = Deserialize::deserialize(from)?;
        Ok(Arc::new(ClusterConfig { texts, ..config }))
    }
}

impl WholeForm for Arc<ScalingSpec> {
    fn write<To: Serializer>(&self, to: To) -> Result<To::Ok, To::Error> {
        (self, &self.schedule, &self.hpa).serialize(to)
    }

    fn read<'de, Source: Deserializer<'de>>(from: Source) -> Result<Self, Source::Error> {
        let (spec, schedule, hpa): (ScalingSpec, _, _) = Deserialize::deserialize(from)?;
        Ok(Arc::new(ScalingSpec { schedule, hpa, ..spec }))
    }
}

impl WholeForm for RevisionSettings {
    fn write<To: Serializer>(&self, to: To) -> Result<To::Ok, To::Error> {
        let Self { schedule, waiting_page, document, requests, usage, texts, .. } = self;
        (self, schedule, waiting_page, document, requests, usage, texts).serialize(to)
    }

    fn read<'de, Source: Deserializer<'de>>(from: Source) -> Result<Self, Source::Error> {
        let (shown, schedule, waiting_page, document, requests, usage, texts): (Self, _, _, _, _, _, _) =
            Deserialize::deserialize(from)?;
        Ok(Self { schedule, waiting_page, document, requests, usage, texts, ..shown })
    }
}
