//! Functions of a profile: of which crate they are, which of them copy memory, and which ones allocate it.
//!
//! What callgrind calls a function is what the executable's symbols say: `dataplane::server::serve`,
//! `<bytes::bytes::Bytes as core::clone::Clone>::clone`, `core::ptr::drop_in_place<tokio::…>`, `mi_malloc`
//! and the C library's `__memcpy_avx_unaligned_erms`. An executable without symbols tells nothing of this.

use super::profile::{ProfiledCall, ProfiledFunction};

/// What mimalloc's functions belong to, which is written in C and has no paths.
const MIMALLOC: &str = "mimalloc";

/// The destructor of a type: it costs what the type costs.
const DESTRUCTOR: &str = "core::ptr::drop_in_place<";

/// Beginnings of a type before its path.
const BEFORE_PATHS: [&str; 5] = ["mut ", "const ", "dyn ", "impl ", "unsafe "];

/// The C library's functions that allocate.
const ALLOCATING: [&str; 8] =
    ["malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc", "posix_memalign", "valloc"];

impl ProfiledFunction {
    /// The crate of a function in Rust, `mimalloc`, or else the file name of the executable or library that
    /// has it.
    pub fn crate_name(&self) -> &str {
        if let Some(name) = crate_of_path(&self.name) {
            return name;
        }
        if self.is_of_mimalloc() {
            return MIMALLOC;
        }
        self.object.rsplit('/').next().unwrap_or(&self.object)
    }

    /// Whether it copies memory and does nothing else, whatever variant of it the processor has.
    pub fn copies_memory(&self) -> bool {
        let last = self.name.rsplit("::").next().unwrap_or_default();
        ["memcpy", "memmove", "mempcpy"].iter().any(|name| last.contains(name))
    }

    fn is_of_mimalloc(&self) -> bool {
        ["mi_", "_mi_", "__mi_"].iter().any(|start| self.name.starts_with(start))
    }

    /// Whether it is how programs ask for memory: of mimalloc any function with such a name, for which of
    /// them are inlined differs from one compiler to the next.
    fn allocates(&self) -> bool {
        // A recursion has its depth at the end.
        let name = self.name.split('\'').next().unwrap_or_default();
        if self.is_of_mimalloc() {
            return ["malloc", "zalloc", "calloc", "realloc"].iter().any(|part| name.contains(part));
        }
        ALLOCATING.contains(&name)
    }
}

impl ProfiledCall {
    /// Whether it asks an allocator for memory. One entry point that uses another asks once.
    pub fn asks_for_memory(&self) -> bool {
        self.callee.allocates() && !self.caller.allocates() && !self.caller.is_of_mimalloc()
    }
}

/// The crate that the path of a function in Rust begins with.
fn crate_of_path(name: &str) -> Option<&str> {
    let mut rest = name.strip_prefix(DESTRUCTOR).unwrap_or(name);
    loop {
        let before = rest;
        rest = rest.trim_start_matches(['<', '&', '*', '(', '[', ' ']);
        for word in BEFORE_PATHS {
            rest = rest.strip_prefix(word).unwrap_or(rest);
        }
        if rest == before {
            break;
        }
    }
    let end = rest.find(|letter: char| !is_of_identifier(letter)).unwrap_or(rest.len());
    let (first, behind) = rest.split_at(end);
    if !first.is_empty() && behind.starts_with("::") {
        return Some(first);
    }
    // `<T as bytes::Buf>::get_u8` is of the crate of the trait, and the destructor of a slice of bytes is of
    // the standard library.
    if let Some((_, of_trait)) = name.split_once(" as ") {
        return crate_of_path(of_trait);
    }
    name.split_once("::").map(|(first, _)| first).filter(|first| is_identifier(first))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_of_identifier)
}

fn is_of_identifier(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(object: &str, name: &str) -> ProfiledFunction {
        ProfiledFunction { object: object.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn functions_belong_to_crates_and_libraries() {
        for (name, expected) in [
            ("dataplane::server::http1::run::{{closure}}", "dataplane"),
            ("<bytes::bytes::Bytes as core::clone::Clone>::clone", "bytes"),
            ("<&mut tokio::net::TcpStream as core::future::Future>::poll", "tokio"),
            ("core::ptr::drop_in_place<http::header::map::HeaderMap>", "http"),
            ("core::ptr::drop_in_place<[u8]>", "core"),
            ("core::slice::<impl [T]>::split_at_unchecked", "core"),
            ("<T as bytes::buf::Buf>::get_u8", "bytes"),
            ("<I as core::iter::traits::collect::IntoIterator>::into_iter", "core"),
            ("<(core::ops::Bound<T>,core::ops::Bound<T>) as core::ops::RangeBounds<T>>::start_bound", "core"),
            ("<dyn tracing_core::field::Value as core::fmt::Debug>::fmt", "tracing_core"),
            ("mi_malloc_aligned", "mimalloc"),
            ("_mi_page_retire", "mimalloc"),
            ("aes_gcm_enc_update", "ebb"),
        ] {
            assert_eq!(function("/opt/bin/ebb", name).crate_name(), expected, "{name}");
        }
        assert_eq!(function("/usr/lib/libc.so.6", "__memset_avx2").crate_name(), "libc.so.6");
        assert_eq!(function("???", "0x0000000000002310").crate_name(), "???");
    }

    #[test]
    fn copies_are_told_from_functions_that_copy_among_other_things() {
        for name in ["__memcpy_avx_unaligned_erms", "memmove", "compiler_builtins::mem::memcpy"] {
            assert!(function("libc.so.6", name).copies_memory(), "{name}");
        }
        for name in ["__memset_avx2_unaligned", "memcpy_like::other::run", "bytes::copy"] {
            assert!(!function("libc.so.6", name).copies_memory(), "{name}");
        }
    }

    #[test]
    fn an_allocation_counts_once_whatever_the_allocator_calls_itself() {
        let (ours, libc) = ("/opt/ebb", "/usr/lib/libc.so.6");
        for (from, to, expected) in [
            ((ours, "alloc::raw_vec::finish_grow"), (ours, "mi_malloc_aligned"), true),
            ((ours, "alloc::raw_vec::finish_grow"), (ours, "mi_realloc_aligned"), true),
            ((ours, "tokio::task::new"), (ours, "mi_zalloc_aligned"), true),
            ((libc, "fopen"), (libc, "malloc"), true),
            ((ours, "mi_malloc_aligned"), (ours, "mi_theap_malloc_aligned"), false),
            ((ours, "_mi_process_init"), (ours, "mi_malloc"), false),
            ((libc, "realloc"), (libc, "malloc"), false),
            ((libc, "malloc"), (libc, "_int_malloc"), false),
            ((ours, "alloc::sync::Arc::drop_slow"), (ours, "mi_free"), false),
            ((ours, "dataplane::malloc::of"), (ours, "dataplane::server::serve"), false),
        ] {
            let [from, to] = [from, to].map(|(object, name)| function(object, name));
            let call = ProfiledCall { caller: from, callee: to };
            assert_eq!(call.asks_for_memory(), expected, "{call:?}");
        }
    }
}
