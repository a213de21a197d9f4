//! One load: a code for its quantities, and their values.

use vocabulary::{Concurrency, Load, QuantityError, RequestRate};

use super::columns::{ReadColumn, WrittenColumn};
use super::quantities::{concurrency_in, concurrency_out, rate_in, rate_out};
use crate::frame_fault::FrameFault;

/// More than any reporter can see at once or in a second, and more than a link takes.
const QUANTITY_MAX: f64 = 1e9;
/// The code of a load has those of its concurrency and its rate, and between them that of its proxied part.
const CONCURRENCY_MASK: u8 = 7;
const RATE_SHIFT: u32 = 5;
const PROXIED_SHIFT: u32 = 3;
const PROXIED_MASK: u8 = 3;

/// No part of the load came through an activator, and nothing waits.
const NOT_PROXIED: u8 = 0;
/// All of it came through an activator, and nothing waits.
const ALL_PROXIED: u8 = 1;
/// All of it came through an activator, and the number of requests that wait follows.
const ALL_PROXIED_AND_WAITING: u8 = 2;
/// A second code follows, of the proxied part. It says whether the number of requests that wait follows.
const SEPARATE: u8 = 3;
const WAITING: u8 = 1 << PROXIED_SHIFT;

/// Whether a load is one that links take.
pub(super) fn is_usual(load: &Load) -> bool {
    let quantities = [
        load.concurrency.value(),
        load.proxied_concurrency.value(),
        load.request_rate.value(),
        load.proxied_request_rate.value(),
    ];
    quantities.iter().all(|quantity| *quantity <= QUANTITY_MAX)
}

pub(super) fn load_out(load: &Load, codes: &mut WrittenColumn, values: &mut WrittenColumn) {
    let proxied = proxied_code(load);
    let code = quantities_out(load.concurrency, load.request_rate, values);
    codes.byte(code | (proxied << PROXIED_SHIFT));
    if proxied == SEPARATE {
        let code = quantities_out(load.proxied_concurrency, load.proxied_request_rate, values);
        codes.byte(code | if load.queued > 0 { WAITING } else { 0 });
    }
    // Each form that has no number of waiting requests stands for a load with none.
    if load.queued > 0 {
        values.number(load.queued.into());
    }
}

/// Writes a concurrency and a rate; returns their codes, each in its place.
fn quantities_out(concurrency: Concurrency, rate: RequestRate, values: &mut WrittenColumn) -> u8 {
    concurrency_out(concurrency.value(), values) | (rate_out(rate.value(), values) << RATE_SHIFT)
}

fn proxied_code(load: &Load) -> u8 {
    let is_proxied_part = |concurrency: Concurrency, rate: RequestRate| {
        load.proxied_concurrency == concurrency && load.proxied_request_rate == rate
    };
    if load.queued == 0 && is_proxied_part(Concurrency::ZERO, RequestRate::ZERO) {
        NOT_PROXIED
    } else if !is_proxied_part(load.concurrency, load.request_rate) {
        SEPARATE
    } else if load.queued == 0 {
        ALL_PROXIED
    } else {
        ALL_PROXIED_AND_WAITING
    }
}

pub(super) fn load_in(codes: &mut ReadColumn<'_>, values: &mut ReadColumn<'_>) -> Result<Load, FrameFault> {
    let code = codes.byte()?;
    let (concurrency, request_rate) = quantities_in(code, values)?;
    let mut load = Load { concurrency, request_rate, ..Load::default() };
    let is_waiting = match (code >> PROXIED_SHIFT) & PROXIED_MASK {
        NOT_PROXIED => false,
        SEPARATE => {
            let code = codes.byte()?;
            (load.proxied_concurrency, load.proxied_request_rate) = quantities_in(code, values)?;
            code & WAITING != 0
        }
        all_proxied => {
            (load.proxied_concurrency, load.proxied_request_rate) = (concurrency, request_rate);
            all_proxied == ALL_PROXIED_AND_WAITING
        }
    };
    if is_waiting {
        let number = u32::try_from(values.number()?);
        load.queued = number.map_err(|_| values.bad("have more waiting requests than 32 bits say"))?;
    }
    Ok(load)
}

fn quantities_in(code: u8, values: &mut ReadColumn<'_>) -> Result<(Concurrency, RequestRate), FrameFault> {
    let concurrency = concurrency_in(code & CONCURRENCY_MASK, values)?;
    let rate = rate_in(code >> RATE_SHIFT, values)?;
    Ok((checked(concurrency, Concurrency::new, values)?, checked(rate, RequestRate::new, values)?))
}

fn checked<Quantity>(
    value: f64,
    new: fn(f64) -> Result<Quantity, QuantityError>,
    values: &ReadColumn<'_>,
) -> Result<Quantity, FrameFault> {
    if value > QUANTITY_MAX {
        return Err(values.bad(&format!("have the quantity {value}, more than {QUANTITY_MAX}")));
    }
    new(value).map_err(|error| values.bad(&format!("have a number that is no quantity: {error}")))
}
