//! Which program wrote a record?

use std::env;
use std::fs::File;
use std::io::{self, Read as _};

use flate2::Crc;

/// The version of this program with a check number of its executable. Two programs of one version may decide
/// differently; one executable does not.
pub fn build_of_this_program(version: &str) -> String {
    match executable_check_number() {
        Ok(number) => format!("{version} ({number:08x})"),
        Err(_) => version.to_owned(),
    }
}

fn executable_check_number() -> io::Result<u32> {
    let mut executable = File::open(env::current_exe()?)?;
    let (mut crc, mut part) = (Crc::new(), vec![0; 1 << 20]);
    loop {
        match executable.read(&mut part)? {
            0 => return Ok(crc.sum()),
            read => crc.update(&part[..read]),
        }
    }
}
