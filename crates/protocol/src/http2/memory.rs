//! How much memory may the connections of a process take for bytes that were not read yet?
//!
//! Windows bound what one stream holds, and a client may open hundreds of streams on hundreds of connections.
//! So what is held is counted in a budget of the process, and a connection may hold a part of what is *free*:
//! a quarter of it, as switches divide their buffers among ports. Alone it may hold much; the more there are
//! that hold much, the less each of them, and a part always stays free for those that hold little. No
//! connection has to look for the one that holds most: it is the one that gets no more. What it does then is
//! the session's affair: for a body it breaks off the stream that was not read for the longest time; for a
//! head it reads no more for a while, and then refuses the stream that the head would open.
//!
//! Large heads have a smaller budget inside: what many hostile clients hold of them costs them nothing but
//! time, and apps that want such heads get few at a time.
//!
//! A connection of HTTP/1.1 has one piece of a body under way at most, and reads small ones while memory is
//! scarce, which need no account. Its heads count from when they are longer than a read, as they do in
//! HTTP/2.
//!
//! A connection takes from the budget in steps, and nothing for its first few pieces, so an ordinary request
//! never touches what all threads share.

use std::sync::LazyLock;
use std::time::Duration;

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// How long a connection is not read when there is no memory for a head that comes on it, before that head
/// is refused: others may have been answered by then.
pub const MEMORY_PAUSE: Duration = Duration::from_millis(250);

/// What a field of a head takes beside its letters: its place in a map that grows by doubling, and two
/// allocations.
const FIELD_BYTES: usize = 192;

/// What a head of so many bytes and fields takes of memory: its letters twice, as they are kept and as they
/// are written on to the next hop, and its fields.
pub fn head_memory(bytes: usize, fields: usize) -> usize {
    2 * bytes + FIELD_BYTES * fields
}

/// As much as all connections may hold, where memory is not scarcer than that.
const BUDGET_BYTES_MAX: usize = 256 * 1024 * 1024;

/// As much as one connection may hold, however much is free: 250 requests with unread bodies hold half
/// of it.
const CONNECTION_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How many bytes large heads of all connections may hold: those of 180 requests with cookies of 64 KB.
const LARGE_HEADS_BYTES_MAX: usize = 24 * 1024 * 1024;

/// A head is large if it takes more memory than this: hardly any browser sends so much.
const LARGE_HEAD_BYTES: usize = 32 * 1024;

/// What a connection holds without taking it from the budget.
const UNCOUNTED_BYTES: usize = 16 * 1024;

/// What a connection takes at once.
const STEP_BYTES: usize = 16 * 1024;

/// A connection may hold one part of so many of what is free.
const FREE_PARTS: usize = 4;

/// Large heads of one connection may hold one part of so many of what is free in their budget: a larger part
/// than bodies, because heads of many clients come on one connection of an activator.
const LARGE_HEADS_FREE_PARTS: usize = 2;

/// From one part of so many on, what is held is so much that new streams get no more room than they need: 16
/// MiB of 256, which are 1,000 unread responses of 16 KiB. Honest clients read, so it takes an
/// attack or a great many slow ones.
const SCARCE_PARTS: usize = 16;

/// What the connections of one process may hold, and what they do hold.
#[derive(Debug)]
pub struct MemoryBudget {
    bytes_max: usize,
    held: AtomicUsize,
    /// How many of the bytes in `held` large heads take.
    large_heads: AtomicUsize,
    refusals: AtomicU64,
}

/// What a head of this memory takes of the budget of large heads.
pub fn large_head_memory(memory: usize) -> usize {
    if memory > LARGE_HEAD_BYTES { memory } else { 0 }
}

/// The budget of a process that says nothing else. Made when it is asked for: loom's numbers cannot be made
/// before the program runs.
static DEFAULT: LazyLock<MemoryBudget> = LazyLock::new(|| MemoryBudget::new(BUDGET_BYTES_MAX));

impl MemoryBudget {
    fn new(bytes_max: usize) -> Self {
        let [held, large_heads] = [0, 0].map(AtomicUsize::new);
        Self { bytes_max, held, large_heads, refusals: AtomicU64::new(0) }
    }

    /// A budget for as long as the process lives: 256 MiB, or half of what the process may have if that is
    /// less.
    pub fn of_process(memory_limit: Option<u64>) -> &'static Self {
        let half = memory_limit.map_or(usize::MAX, |limit| usize::try_from(limit / 2).unwrap_or(usize::MAX));
        Box::leak(Box::new(Self::new(half.min(BUDGET_BYTES_MAX))))
    }

    /// As much as may be held.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// How many bytes are held, but for the first few of each connection.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether so much is held that streams should get no more room than they need.
    pub fn is_scarce(&self) -> bool {
        self.held() > self.bytes_max / SCARCE_PARTS
    }

    /// Whether a connection that holds nothing yet may hold so much, and streams need not get by with what
    /// they need.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        let free = self.bytes_max.saturating_sub(self.held()).saturating_sub(bytes);
        !self.is_scarce() && bytes <= free / FREE_PARTS
    }

    /// How many streams were broken off since this was last asked, because their connection held its part of
    /// the budget.
    pub fn take_refusals(&self) -> u64 {
        self.refusals.swap(0, Ordering::Relaxed)
    }
}

/// Two are the same if what they count is.
impl PartialEq for MemoryBudget {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for MemoryBudget {}

impl Default for &'static MemoryBudget {
    fn default() -> Self {
        &DEFAULT
    }
}

/// A connection holds its part of the budget, or the most that one may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverShare;

/// What one connection holds. Gives it back when dropped.
#[derive(Debug)]
pub struct MemoryShare {
    budget: &'static MemoryBudget,
    taken: usize,
    /// How many bytes of the budget of large heads this connection has taken.
    large_heads: usize,
}

impl MemoryShare {
    /// Of a connection that holds nothing yet.
    pub fn new(budget: &'static MemoryBudget) -> Self {
        Self { budget, taken: 0, large_heads: 0 }
    }

    /// From now on the connection holds so many bytes. If that is more than its part, nothing changes.
    pub fn settle(&mut self, held: usize) -> Result<(), OverShare> {
        let wanted = held.saturating_sub(UNCOUNTED_BYTES).next_multiple_of(STEP_BYTES);
        if wanted <= self.taken {
            if wanted < self.taken {
                self.budget.held.fetch_sub(self.taken - wanted, Ordering::Relaxed);
                self.taken = wanted;
            }
            return Ok(());
        }
        let more = wanted - self.taken;
        // Two threads that ask at once may take a step too much each.
        if wanted > CONNECTION_BYTES_MAX || wanted > self.free_after(more) / FREE_PARTS {
            return Err(OverShare);
        }
        self.budget.held.fetch_add(more, Ordering::Relaxed);
        self.taken = wanted;
        Ok(())
    }

    /// Whether the connection has taken anything of the budget. Most have not: their first few pieces are not
    /// counted.
    pub fn has_taken(&self) -> bool {
        self.taken > 0 || self.large_heads > 0
    }

    /// Whether the connection may hold so many bytes. What it holds does not change by the question.
    pub fn has_room(&self, held: usize) -> bool {
        let wanted = held.saturating_sub(UNCOUNTED_BYTES).next_multiple_of(STEP_BYTES);
        let more = wanted.saturating_sub(self.taken);
        more == 0 || (wanted <= CONNECTION_BYTES_MAX && wanted <= self.free_after(more) / FREE_PARTS)
    }

    /// From now on large heads of the connection hold so many bytes, within what it holds in all. If that is
    /// more than its part, nothing changes.
    pub fn settle_large_heads(&mut self, held: usize) -> Result<(), OverShare> {
        if !self.has_room_for_large_heads(held) {
            return Err(OverShare);
        }
        let wanted = held.next_multiple_of(STEP_BYTES);
        if wanted > self.large_heads {
            self.budget.large_heads.fetch_add(wanted - self.large_heads, Ordering::Relaxed);
        } else if wanted < self.large_heads {
            self.budget.large_heads.fetch_sub(self.large_heads - wanted, Ordering::Relaxed);
        }
        self.large_heads = wanted;
        Ok(())
    }

    /// Whether large heads of the connection may hold so many bytes. What they hold does not change by the
    /// question.
    pub fn has_room_for_large_heads(&self, held: usize) -> bool {
        let wanted = held.next_multiple_of(STEP_BYTES);
        // An ordinary request never touches what all threads share.
        if wanted <= self.large_heads {
            return true;
        }
        let taken = self.budget.large_heads.load(Ordering::Relaxed) + wanted - self.large_heads;
        wanted <= LARGE_HEADS_BYTES_MAX.saturating_sub(taken) / LARGE_HEADS_FREE_PARTS
    }

    fn free_after(&self, more: usize) -> usize {
        self.budget.bytes_max.saturating_sub(self.budget.held()).saturating_sub(more)
    }

    /// A stream is broken off or refused because the connection holds its part.
    pub fn count_refusal(&self) {
        self.budget.refusals.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.taken, Ordering::Relaxed);
        self.budget.large_heads.fetch_sub(self.large_heads, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn the_budget_is_256_mib_or_half_of_what_there_is() {
        for (limit, expected) in
            [(None, 256 * MIB), (Some(1 << 40), 256 * MIB), (Some(64 << 20), 32 * MIB), (Some(0), 0)]
        {
            assert_eq!(MemoryBudget::of_process(limit).bytes_max(), expected, "{limit:?}");
        }
    }

    #[test]
    fn held_memory_is_taken_in_steps_and_given_back() {
        let budget = MemoryBudget::of_process(None);
        let mut share = MemoryShare::new(budget);
        for (held, taken) in
            [(0, 0), (16 << 10, 0), ((16 << 10) + 1, 16 << 10), (1 << 20, 1008 << 10), (5, 0)]
        {
            assert_eq!(share.settle(held), Ok(()));
            assert_eq!(budget.held(), taken, "{held}");
        }
        share.settle(1 << 20).expect("much is free");
        drop(share);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn large_heads_of_many_connections_hold_24_mib_and_leave_room_for_one_more() {
        let budget = MemoryBudget::of_process(None);
        let head = large_head_memory(head_memory(120_000, 30));
        assert_eq!((head, large_head_memory(LARGE_HEAD_BYTES)), (240_000 + 30 * FIELD_BYTES, 0));
        let mut shares: Vec<(MemoryShare, usize)> = (0..100).map(|_| (MemoryShare::new(budget), 0)).collect();
        for _ in 0..200 {
            for (share, held) in &mut shares {
                if share.settle_large_heads(*held + head).is_ok() {
                    *held += head;
                }
            }
        }
        let total = budget.large_heads.load(Ordering::Relaxed);
        assert!((20 * MIB..=24 * MIB).contains(&total), "{total}");
        assert_eq!(MemoryShare::new(budget).settle_large_heads(130 << 10), Ok(()), "of 64 KB");
        // What a connection gives back others may take.
        drop(shares);
        assert_eq!(budget.large_heads.load(Ordering::Relaxed), 0);
        let mut share = MemoryShare::new(budget);
        assert_eq!(share.settle_large_heads(8 * MIB), Ok(()), "one connection has a third of all");
        assert_eq!(share.settle_large_heads(9 * MIB), Err(OverShare));
        assert_eq!(share.settle_large_heads(0), Ok(()));
        assert_eq!(budget.large_heads.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn one_connection_has_a_limit_of_its_own() {
        let mut share = MemoryShare::new(MemoryBudget::of_process(None));
        assert_eq!(share.settle(32 * MIB), Ok(()));
        assert_eq!(share.settle(33 * MIB), Err(OverShare));
    }

    /// Whatever many take, one that holds little always finds room, and the sum stays within the budget.
    #[test]
    fn many_that_take_all_they_can_leave_room_for_others() {
        for count in [1, 10, 100, 1_000] {
            let budget = MemoryBudget::of_process(None);
            let mut greedy: Vec<(MemoryShare, usize)> =
                (0..count).map(|_| (MemoryShare::new(budget), 0)).collect();
            for _ in 0..2_100 {
                for (share, held) in &mut greedy {
                    if share.settle(*held + STEP_BYTES).is_ok() {
                        *held += STEP_BYTES;
                    }
                }
            }
            assert!(budget.held() <= 256 * MIB, "{count} hold {}", budget.held());
            let mut other = MemoryShare::new(budget);
            assert_eq!(other.settle(128 << 10), Ok(()), "beside {count}");
        }
    }
}
