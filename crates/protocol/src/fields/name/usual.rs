//! The beginnings of lines that nearly every head has.

/// A name in lower case with `: ` behind it, as it begins a line.
pub(super) struct UsualName<const LENGTH: usize> {
    text: [u8; LENGTH],
    /// The bit by which the two cases of a letter differ, where the text has a letter. Any other byte is only
    /// what it is: with that bit, a carriage return would be a hyphen.
    case: [u8; LENGTH],
}

pub(super) const HOST: UsualName<6> = UsualName::new(*b"host: ");
pub(super) const DATE: UsualName<6> = UsualName::new(*b"date: ");
pub(super) const ACCEPT: UsualName<8> = UsualName::new(*b"accept: ");
pub(super) const USER_AGENT: UsualName<12> = UsualName::new(*b"user-agent: ");
pub(super) const CONTENT_TYPE: UsualName<14> = UsualName::new(*b"content-type: ");
pub(super) const CONTENT_LENGTH: UsualName<16> = UsualName::new(*b"content-length: ");

impl<const LENGTH: usize> UsualName<LENGTH> {
    const fn new(text: [u8; LENGTH]) -> Self {
        let mut case = [0; LENGTH];
        let mut at = 0;
        while at < LENGTH {
            if text[at].is_ascii_lowercase() {
                case[at] = 0x20;
            }
            at += 1;
        }
        Self { text, case }
    }

    /// How long the name at the beginning of a line is with `: ` behind it; `None` if it is another name.
    pub(super) fn length_in(&self, line: &[u8]) -> Option<usize> {
        let begin: &[u8; LENGTH] = line.first_chunk()?;
        // The length is known when this is compiled, so that these are operations on words.
        let lower_case: [u8; LENGTH] = std::array::from_fn(|at| begin[at] | self.case[at]);
        (lower_case == self.text).then_some(LENGTH)
    }
}
