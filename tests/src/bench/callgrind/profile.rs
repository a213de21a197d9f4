//! Callgrind's profile, read: how many instructions each function had, and how often it called each other.
//!
//! The format is valgrind's (manual, "Callgrind Format Specification"). Its lines are headers (`events: Ir`),
//! places (`ob=`, `fl=`, `fn=` say whose costs follow; `cob=`, `cfn=` whom the next call is of), calls
//! (`calls=TIMES LINE`, with the inclusive cost on the line below) and costs (`LINE INSTRUCTIONS`). A name
//! comes in full once, behind a number in parentheses, and is its number from then on. A line number is
//! absolute, relative to the last (`+3`, `-2`) or the same (`*`). Files and lines are not kept: a function's
//! own cost is asked for, and whom it called.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};

/// The event that counts executed instructions.
const INSTRUCTIONS: &str = "Ir";

/// Headers that say nothing that is needed here.
const OTHER_HEADERS: [&str; 7] = ["creator", "pid", "cmd", "part", "thread", "desc", "summary"];
/// Places of source files, and jumps within a function.
const OTHER_PLACES: [&str; 7] = ["fl", "fi", "fe", "cfi", "cfl", "jump", "jcnd"];

/// A function by its name and the executable or library that has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProfiledFunction {
    /// The path of the executable or library; `???` where callgrind does not know it.
    pub object: String,
    /// The name, as the object's symbols and callgrind's demangling have it.
    pub name: String,
}

/// One function that calls another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProfiledCall {
    /// The function in which the call stands.
    pub caller: ProfiledFunction,
    /// The function that is called.
    pub callee: ProfiledFunction,
}

/// What a thread, or several of them, did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Instructions of each function, without those of the functions that it called.
    pub instructions: BTreeMap<ProfiledFunction, u64>,
    /// The number of times that one function called another.
    pub calls: BTreeMap<ProfiledCall, u64>,
}

impl Profile {
    /// Reads the profile of one thread. Fails, with the line, where the text is no profile, and where it is
    /// cut off.
    pub fn read(text: &str) -> anyhow::Result<Self> {
        let mut reader = ProfileReader::default();
        for (at, line) in text.lines().enumerate() {
            reader.line(line.trim()).with_context(|| format!("line {}: {line:?}", at + 1))?;
        }
        reader.end()
    }

    /// What several threads did together.
    #[must_use]
    pub fn together(threads: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for Self { instructions, calls } in threads {
            for (function, count) in instructions {
                *all.instructions.entry(function).or_default() += count;
            }
            for (call, times) in calls {
                *all.calls.entry(call).or_default() += times;
            }
        }
        all
    }

    /// All instructions that were executed.
    pub fn total(&self) -> u64 {
        self.instructions.values().sum()
    }
}

/// A function in the text that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FunctionPlace<'t> {
    object: &'t str,
    name: &'t str,
}

impl FunctionPlace<'_> {
    fn to_function(self) -> ProfiledFunction {
        ProfiledFunction { object: self.object.to_owned(), name: self.name.to_owned() }
    }
}

/// Two functions in the text that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CallPlace<'t> {
    caller: FunctionPlace<'t>,
    callee: FunctionPlace<'t>,
}

/// Whose cost the next line of costs has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NextCost {
    /// The function's that the last `fn=` named.
    #[default]
    Own,
    /// That of the call above, which is in the callee's own costs already.
    OfCall,
}

#[derive(Debug, Default)]
struct ProfileReader<'t> {
    objects: CompressedNames<'t>,
    functions: CompressedNames<'t>,
    object: Option<&'t str>,
    function: Option<&'t str>,
    called_object: Option<&'t str>,
    called_function: Option<&'t str>,
    next_cost: NextCost,
    /// Which number of a line of costs, behind the position, counts instructions.
    column: Option<usize>,
    totals: Option<u64>,
    instructions: BTreeMap<FunctionPlace<'t>, u64>,
    calls: BTreeMap<CallPlace<'t>, u64>,
}

impl<'t> ProfileReader<'t> {
    fn line(&mut self, line: &'t str) -> anyhow::Result<()> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            return self.cost(line);
        }
        // A call is followed by its cost, or the profile means something else than it says.
        ensure!(self.next_cost == NextCost::Own, "the cost of the call above is missing");
        let end = line.find(['=', ':']).context("neither a header, nor a place, nor a cost")?;
        let (key, value) = (&line[..end], line[end + 1..].trim());
        if line[end..].starts_with('=') { self.place(key, value) } else { self.header(key, value) }
    }

    fn header(&mut self, key: &str, value: &'t str) -> anyhow::Result<()> {
        match key {
            "version" => ensure!(value == "1", "version 1 of the format is known"),
            // With `--dump-instr` an address would come before each line number.
            "positions" => ensure!(value == "line", "positions other than lines are not read"),
            "events" => self.column = value.split_whitespace().position(|event| event == INSTRUCTIONS),
            "totals" => {
                let column = self.column.context("no line `events:` with Ir came before")?;
                self.totals = Some(number(value.split_whitespace().nth(column).unwrap_or_default())?);
            }
            _ => ensure!(OTHER_HEADERS.contains(&key), "there is no header {key:?}"),
        }
        Ok(())
    }

    fn place(&mut self, key: &str, value: &'t str) -> anyhow::Result<()> {
        match key {
            "ob" => self.object = Some(self.objects.name(value)?),
            "fn" => self.function = Some(self.functions.name(value)?),
            "cob" => self.called_object = Some(self.objects.name(value)?),
            "cfn" => self.called_function = Some(self.functions.name(value)?),
            "calls" => {
                let times = number(value.split_whitespace().next().unwrap_or_default())?;
                let caller = self.current()?;
                // Both are said of each call anew; a callee without an object is in the caller's.
                let object = self.called_object.take().unwrap_or(caller.object);
                let name = self.called_function.take().context("no `cfn=` says which function is called")?;
                let call = CallPlace { caller, callee: FunctionPlace { object, name } };
                *self.calls.entry(call).or_default() += times;
                self.next_cost = NextCost::OfCall;
            }
            _ => ensure!(OTHER_PLACES.contains(&key), "there is no place {key:?}"),
        }
        Ok(())
    }

    fn cost(&mut self, line: &str) -> anyhow::Result<()> {
        let column = self.column.context("no line `events:` with Ir came before")?;
        let mut words = line.split_whitespace();
        let position = words.next().unwrap_or_default();
        let digits = position.strip_prefix(['+', '-']).unwrap_or(position);
        ensure!(position == "*" || number(digits).is_ok(), "{position:?} is no line number");
        // Zeros at the end of a line may be left out.
        let instructions = words.nth(column).map_or(Ok(0), number)?;
        if std::mem::take(&mut self.next_cost) == NextCost::Own {
            let current = self.current()?;
            *self.instructions.entry(current).or_default() += instructions;
        }
        Ok(())
    }

    fn current(&self) -> anyhow::Result<FunctionPlace<'t>> {
        let name = self.function.context("no `fn=` says whose cost this is")?;
        Ok(FunctionPlace { object: self.object.unwrap_or("???"), name })
    }

    fn end(self) -> anyhow::Result<Profile> {
        let Some(totals) = self.totals else {
            bail!("it is cut off, for it has no line `totals:`: was the process killed while it wrote?");
        };
        let instructions =
            self.instructions.into_iter().map(|(place, count)| (place.to_function(), count)).collect();
        let calls = self.calls.into_iter().map(|(CallPlace { caller, callee }, times)| {
            (ProfiledCall { caller: caller.to_function(), callee: callee.to_function() }, times)
        });
        let profile = Profile { instructions, calls: calls.collect() };
        let sum = profile.total();
        ensure!(sum == totals, "its costs add up to {sum}, and its line `totals:` says {totals}");
        Ok(profile)
    }
}

fn number(text: &str) -> anyhow::Result<u64> {
    text.parse().with_context(|| format!("{text:?} is no number"))
}

/// Names by the number that stands for them after their first time.
#[derive(Debug, Default)]
struct CompressedNames<'t>(BTreeMap<u64, &'t str>);

impl<'t> CompressedNames<'t> {
    /// The name that this text is, defines or stands for: `NAME`, `(7) NAME` or `(7)`.
    fn name(&mut self, text: &'t str) -> anyhow::Result<&'t str> {
        let compressed = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        // Names may have parentheses of their own: `(below main)`.
        let Some((Ok(id), name)) = compressed.map(|(id, name)| (id.parse::<u64>(), name.trim())) else {
            return Ok(text);
        };
        if name.is_empty() {
            return self.0.get(&id).copied().with_context(|| format!("({id}) stands for no name yet"));
        }
        self.0.insert(id, name);
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two functions of a program and one of a library, as callgrind 3.19 writes them.
    const TEXT: &str = "\
# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 1394
cmd:  ebb queue-proxy
part: 1
thread: 1


desc: I1 cache: 
desc: Timerange: Basic block 0 - 29619
desc: Trigger: Program termination

positions: line
events: Ir
summary: 131


ob=(7) /opt/ebb
fl=(1) crates/dataplane/src/server.rs
fn=(12) dataplane::server::serve::{{closure}}
77 6
+6 2
fi=(2) core/src/future.rs
-6 3
fe=(1)
* 4
cob=(3) /usr/lib/libc.so.6
cfi=(3) ./string/memmove.S
cfn=(40) __memcpy_avx_unaligned_erms
calls=5 206 
+4 100
cfn=(13) <bytes::bytes::Bytes as core::clone::Clone>::clone
calls=2 -29 
* 16
90 0

fn=(13)
5 16

ob=(3)
fl=(3)
fn=(40)
206 60
+1 40

totals: 131
";

    fn function(object: &str, name: &str) -> ProfiledFunction {
        ProfiledFunction { object: object.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn costs_are_each_functions_own_and_calls_are_counted() {
        let profile = Profile::read(TEXT).unwrap();
        let serve = function("/opt/ebb", "dataplane::server::serve::{{closure}}");
        let clone = function("/opt/ebb", "<bytes::bytes::Bytes as core::clone::Clone>::clone");
        let memcpy = function("/usr/lib/libc.so.6", "__memcpy_avx_unaligned_erms");
        let own = [(serve.clone(), 15), (clone.clone(), 16), (memcpy.clone(), 100)];
        assert_eq!(profile.instructions, BTreeMap::from(own));
        let calls = [
            (ProfiledCall { caller: serve.clone(), callee: memcpy }, 5),
            (ProfiledCall { caller: serve, callee: clone }, 2),
        ];
        assert_eq!(profile.calls, BTreeMap::from(calls));
        assert_eq!(profile.total(), 131);
    }

    #[test]
    fn threads_are_added_up() {
        let one = Profile::read(TEXT).unwrap();
        let both = Profile::together([one.clone(), one.clone()]);
        assert_eq!(both.total(), 2 * one.total());
        assert_eq!(both.calls.values().sum::<u64>(), 14);
        assert_eq!(Profile::together([]), Profile::default());
    }

    #[test]
    fn names_may_be_plain_or_have_parentheses_of_their_own() {
        let text = "events: Cy Ir\nfn=(below main)\n1 9 3\nfn=plain\n2 9\n3\ntotals: 18 3\n";
        let profile = Profile::read(text).unwrap();
        let names = [("(below main)", 3), ("plain", 0)].map(|(name, own)| (function("???", name), own));
        assert_eq!(profile.instructions, BTreeMap::from(names));
    }

    #[test]
    fn bad_profiles_say_what_is_wrong_and_in_which_line() {
        let cut = |at: &str| TEXT.split(at).next().unwrap().to_owned();
        for (text, expected) in [
            (String::new(), "it is cut off"),
            (cut("totals"), "it is cut off"),
            (cut("206 60"), "it is cut off"),
            (
                TEXT.replace("totals: 131", "totals: 130"),
                "costs add up to 131, and its line `totals:` says 130",
            ),
            (TEXT.replace("fn=(13)\n", "fn=(14)\n"), "line 38: \"fn=(14)\": (14) stands for no name yet"),
            (TEXT.replace("* 16\n90 0\n", ""), "the cost of the call above is missing"),
            (TEXT.replace("events: Ir", "events: Dr"), "no line `events:` with Ir came before"),
            (TEXT.replace("version: 1", "version: 2"), "version 1 of the format is known"),
            (TEXT.replace("positions: line", "positions: instr line"), "positions other than lines"),
            (TEXT.replace("77 6", "77 many"), "\"many\" is no number"),
            (TEXT.replace("77 6", "0x77 6"), "\"0x77\" is no line number"),
            (TEXT.replace("+6 2", "nonsense"), "neither a header, nor a place, nor a cost"),
            (TEXT.replace("part: 1", "party: 1"), "there is no header \"party\""),
            (TEXT.replace("fl=(3)\n", "gl=(3)\n"), "there is no place \"gl\""),
        ] {
            let error = format!("{:#}", Profile::read(&text).unwrap_err());
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
