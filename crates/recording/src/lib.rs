//! How is a run of the control loop written down, and read again?
//!
//! The orchestrator is a value: the same events in the same order give the same commands. So a record holds
//! what came from outside, in the order in which it was handled, and beside each event a hash of the commands
//! that came out. [`RecordWriter`] writes such a record from [`RecordEntry`]s; [`RecordReplay`] drives a real
//! orchestrator with what [`RecordReader`] reads, and says whether it decides as it did.
//!
//! A record is a folder of segments, each a file of compressed blocks of frames. A keyframe in a segment says
//! what an owner that takes over there would find, so that old segments can be removed and damaged ones
//! passed over. Nothing of a request is in a record, and no key or token.

mod block;
mod count_comparison;
mod entry;
mod exact_keyframe;
mod frame_fault;
mod frames;
mod header;
mod hidden_frames;
mod hidden_names;
mod history_folder;
mod history_frames;
mod history_pieces;
mod keyframe;
mod keyframe_histories;
mod known_presence;
mod known_world;
mod last_words;
mod open_segment;
mod outcome;
mod peers;
mod program_build;
mod read_frame;
mod read_segment;
mod reader;
mod record_beginning;
mod record_copy;
mod record_folders;
mod record_time;
mod recorded_load;
mod recorded_revision;
mod replay;
mod reports;
mod rereading;
mod secrets;
mod seen_seconds;
mod segment_files;
#[cfg(test)]
mod tests;
mod translation;
mod wire;
mod writer;

pub use count_comparison::{CountDivergence, CountLikeness};
pub use entry::{RecordEntry, RecordInput};
pub use frame_fault::FrameFault;
pub use header::{SegmentHeader, SegmentStart};
pub use hidden_names::{NameKey, RecordedNames};
pub use history_folder::{HistoryFolder, PastHistories, StoredHistory};
pub use history_pieces::HistoryPieces;
pub use keyframe_histories::KeyframeHistories;
pub use program_build::build_of_this_program;
pub use reader::{RecordGap, RecordReader};
pub use record_copy::{RecordCopy, StoredSegment, segment_part, stored_segments};
pub use record_folders::record_folders;
pub use record_time::RecordTime;
pub use recorded_load::{RecordedLoad, RecordedRestart};
pub use recorded_revision::RecordedRevision;
pub use replay::{RecordReplay, ReplayReport};
pub use rereading::SettingsChanges;
pub use writer::{KEYFRAME_EVERY, RecordLoss, RecordSettings, RecordWriter};
