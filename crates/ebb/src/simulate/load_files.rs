//! Loads that stand in files, plain or packed by gzip.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Take};
use std::path::Path;
use std::time::Duration;

use flate2::bufread::MultiGzDecoder;
use simulator::{LoadFile, LoadFileReader};
use vocabulary::{format_duration, shown};

/// The first bytes of what gzip has packed.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// More text than a load needs: a packed file of any size may be as long as it likes.
const BYTES_MAX: u64 = 1 << 30;

/// The text of a file, unpacked.
type LoadText = BufReader<Take<Box<dyn Read>>>;

/// The load of a file with one number for each bin or, without a length of bins, one request in each line. In
/// a trace of Azure Functions what stands behind `#` chooses a function.
pub(crate) fn read(written: &str, bin: Option<Duration>) -> Result<LoadFile, String> {
    let mut load = OpenLoad::new(written, bin);
    each_line(written, |line| load.take_line(line))?;
    load.finish()
}

/// [`read`] of the text that [`text`] gave for the same file.
pub(crate) fn read_text(written: &str, text: &str, bin: Option<Duration>) -> Result<LoadFile, String> {
    let mut load = OpenLoad::new(written, bin);
    text.lines().try_for_each(|line| load.take_line(line))?;
    load.finish()
}

/// The text of a file, unpacked, for a caller that goes through it twice: a pipe can be read only once.
pub(crate) fn text(written: &str) -> Result<String, String> {
    let mut text = String::new();
    each_line(written, |line| {
        text.push_str(line);
        Ok(())
    })?;
    Ok(text)
}

/// The load of a file, as far as it is read.
struct OpenLoad<'n> {
    name: &'n str,
    function: Option<&'n str>,
    reader: LoadFileReader,
}

impl<'n> OpenLoad<'n> {
    fn new(written: &'n str, bin: Option<Duration>) -> Self {
        let (name, function) = name_and_function(written);
        Self { name, function, reader: LoadFileReader::new(bin).of_function(function) }
    }

    fn take_line(&mut self, line: &str) -> Result<(), String> {
        self.reader.take_line(line).map_err(|problem| format!("{}: {problem}", self.name))
    }

    fn finish(self) -> Result<LoadFile, String> {
        let Self { name, function, reader } = self;
        reader.finish().ok_or_else(|| match function {
            Some(function) => format!(
                "{name}: no line is of a function or an app whose hash begins with {}",
                shown(function)
            ),
            None => format!("{name}: no line has a number; write one line for each request"),
        })
    }
}

/// Hands out the lines of a file, unpacked, one by one.
fn each_line(written: &str, mut take: impl FnMut(&str) -> Result<(), String>) -> Result<(), String> {
    let (name, _) = name_and_function(written);
    let told = |error: io::Error| format!("{name}: {error}");
    let mut text = open(name).map_err(told)?;
    let mut line = String::new();
    while text.read_line(&mut line).map_err(told)? > 0 {
        take(&line)?;
        line.clear();
    }
    if text.get_ref().limit() == 0 {
        return Err(format!("{name}: the text is longer than {BYTES_MAX} bytes, the most that is read"));
    }
    Ok(())
}

/// The name of a file, and the function of it that is chosen. A file whose own name has a `#` is whole.
fn name_and_function(written: &str) -> (&str, Option<&str>) {
    match written.rsplit_once('#') {
        Some((name, function)) if !Path::new(written).exists() => (name, Some(function)),
        Some(_) | None => (written, None),
    }
}

/// How much time a file tells of. A list does not say until when it was kept: the minute of its last request
/// is taken as a whole.
pub(super) fn covered(file: &LoadFile) -> Duration {
    match file {
        LoadFile::Counts { .. } => file.span(),
        LoadFile::Requests(_) => Duration::from_secs((file.span().as_secs() / 60 + 1) * 60),
    }
}

/// Refuses a file that ends before the load is to end.
pub(super) fn check_length(name: &str, file: &LoadFile, length: Duration) -> Result<(), String> {
    let covered = covered(file);
    if covered >= length {
        return Ok(());
    }
    Err(format!(
        "{name}: the file ends after {}, and the load is to last {}; simulate no longer than the file",
        format_duration(covered),
        format_duration(length)
    ))
}

fn open(name: &str) -> io::Result<LoadText> {
    let mut file = BufReader::new(File::open(name)?);
    let is_packed = file.fill_buf()?.starts_with(&GZIP);
    let text: Box<dyn Read> = if is_packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    Ok(BufReader::new(text.take(BYTES_MAX)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_packed_file_is_read_as_a_plain_one() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| directory.path().join(name).display().to_string();
        let text = "120\n0\n98\n";
        std::fs::write(path("plain.csv"), text).expect("writing");
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text.as_bytes()).expect("a vector takes everything");
        std::fs::write(path("packed.csv"), packed.finish().expect("a vector takes everything"))
            .expect("writing");
        let plain = read(&path("plain.csv"), Some(MINUTE)).expect("three bins");
        assert_eq!(read(&path("packed.csv"), Some(MINUTE)), Ok(plain.clone()));
        assert_eq!(check_length("plain.csv", &plain, 3 * MINUTE), Ok(()));
        let error = check_length("plain.csv", &plain, 4 * MINUTE).expect_err("it is too short");
        assert_eq!(
            error,
            "plain.csv: the file ends after 3m, and the load is to last 4m; simulate no longer than the file"
        );
    }

    #[test]
    fn a_problem_names_file_line_value_and_what_is_allowed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("requests.csv").display().to_string();
        for (text, bin, expected) in [
            ("1\nx\n", Some(MINUTE), "requests.csv: line 2 is \"x\", which cannot be read"),
            ("1\nx\n", None, "requests.csv: line 2 is \"x\", which cannot be read"),
            ("", None, "requests.csv: no line has a number"),
        ] {
            std::fs::write(&path, text).expect("writing");
            let error = read(&path, bin).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
        let text = "HashOwner,HashApp,HashFunction,Trigger,1,2\no,a1,f1,http,3,4\n";
        std::fs::write(&path, text).expect("writing");
        assert_eq!(
            read(&format!("{path}#f1"), None),
            Ok(LoadFile::Counts { bin: MINUTE, counts: [3, 4].into() })
        );
        let error = read(&format!("{path}#f2"), None).expect_err("there is no such function");
        assert!(
            error.ends_with("requests.csv: no line is of a function or an app whose hash begins with \"f2\"")
        );
        let missing = directory.path().join("none.csv").display().to_string();
        assert!(read(&missing, None).expect_err("there is none").contains("none.csv: "));
    }
}
