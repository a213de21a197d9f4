//! The loads that an activator tells of, to the wire and back.

use std::net::IpAddr;
use std::time::Duration;

use vocabulary::{Caller, RevisionLoad};

use super::{WireError, fields, measures, proto};

/// A second of loads, as the wire has it.
pub(super) fn second_out(second: u64, loads: &[RevisionLoad]) -> proto::Second {
    let loads = loads.iter().map(|load| proto::RevisionLoad {
        revision: load.revision.as_str().to_owned(),
        load: measures::load_out(&load.load),
        oldest_wait: fields::nanoseconds(load.oldest_wait),
        callers: load.callers.iter().map(caller_out).collect(),
    });
    proto::Second { second, loads: loads.collect() }
}

/// The loads of a second, as the wire has them.
pub(super) fn loads(loads: Vec<proto::RevisionLoad>) -> Result<Vec<RevisionLoad>, WireError> {
    let loads = loads.into_iter().map(|load| {
        Ok(RevisionLoad {
            revision: fields::revision("loads.revision", load.revision)?,
            load: measures::load(load.load)?,
            oldest_wait: Duration::from_nanos(load.oldest_wait),
            callers: callers(load.callers)?,
        })
    });
    loads.collect()
}

fn caller_out(caller: &Caller) -> proto::Caller {
    proto::Caller { user_agent: caller.user_agent.to_string(), address: caller.address.to_string() }
}

fn callers(callers: Vec<proto::Caller>) -> Result<Vec<Caller>, WireError> {
    if callers.len() > Caller::NAMED_MAX {
        let (named, most) = (callers.len(), Caller::NAMED_MAX);
        return Err(fields::bad("loads.callers", format!("names {named}, more than {most}")));
    }
    let callers = callers.into_iter().map(|caller| {
        if caller.user_agent.len() > Caller::AGENT_BYTES_MAX {
            return Err(fields::bad("loads.callers.user_agent", "is longer than it may be"));
        }
        let address = caller.address.parse::<IpAddr>();
        let address = address.map_err(|_| fields::bad("loads.callers.address", "is no address"))?;
        Ok(Caller { user_agent: caller.user_agent.into(), address })
    });
    callers.collect()
}
