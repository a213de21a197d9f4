//! The places of one program, and how a connection comes by one.

use std::pin::pin;
use std::sync::Arc;

use super::limits::PageLimits;
use super::seat::PageSeat;
use super::seat_book::{NoPlace, Places};
use crate::clock::Clock;

/// The places of one program. All its listeners for pages share them; clones are the same places.
#[derive(Clone, Debug)]
pub struct PagePlaces(Arc<Places>);

impl PagePlaces {
    /// Places with these limits, all of them free.
    pub fn new(limits: PageLimits, clock: Clock) -> Self {
        Self(Arc::new(Places::new(limits, clock)))
    }

    /// The limits with which the places were made.
    pub fn limits(&self) -> PageLimits {
        self.0.limits
    }

    /// How many connections have a place.
    pub fn open(&self) -> usize {
        self.0.book().seats.len()
    }

    /// Waits for a place. The connection that has rested for longest makes one if there is none. Cancel-safe.
    pub async fn take(&self) -> PageSeat {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            // From here on a change wakes us, also one between the look and the wait.
            changed.as_mut().enable();
            match self.0.try_take() {
                Ok(number) => return PageSeat::new(Arc::clone(&self.0), number),
                Err(NoPlace::Yet) => changed.await,
                Err(NoPlace::Until(again_at)) => {
                    // Cancelling loses nothing: a change is looked for in any case.
                    tokio::select! {
                        () = changed => {}
                        () = self.0.clock.sleep_until(again_at) => {}
                    }
                }
            }
        }
    }

    /// A place, if there is one.
    pub(super) fn take_now(&self) -> Option<PageSeat> {
        self.0.try_take().ok().map(|number| PageSeat::new(Arc::clone(&self.0), number))
    }
}
