use std::os::unix::fs::symlink;

use super::*;

const NAME: &str = "api-127.0.0.1-9000.token";

/// By what a file is not what it was, and how that comes about.
type Damage<'a> = (&'static str, &'a dyn Fn());

fn open(folder: &Path, group: Option<TokenGroup>) -> anyhow::Result<TokenFile> {
    TokenFile::in_folder(folder, NAME, group, TokenLife::OverRestarts)
}

fn settled(folder: &Path) -> ApiToken {
    open(folder, None).and_then(|file| file.establish(None)).expect("the folder is ours")
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

#[test]
fn the_token_is_kept_and_what_is_handed_over_goes_before_it() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("state/ebb");
    let token = settled(&folder);
    assert_eq!((mode(&folder), mode(&folder.join(NAME))), (0o700, 0o600));
    assert_eq!(settled(&folder), token, "over a restart");
    let handed = ApiToken::random();
    let file = open(&folder, None).expect("the folder is ours");
    assert_eq!(file.establish(Some(handed)).ok(), Some(handed));
    assert_eq!(settled(&folder), handed);
    assert_eq!(std::fs::read_dir(&folder).expect("it is there").count(), 1, "nothing else is left there");
}

#[test]
fn a_file_that_others_know_or_that_holds_no_token_is_replaced() {
    let outer = tempfile::tempdir().expect("a folder");
    let (folder, elsewhere) = (outer.path().join("ebb"), outer.path().join("elsewhere"));
    let former = settled(&folder);
    let file = folder.join(NAME);
    let links = ApiToken::random();
    let replaced_by = |make: &dyn Fn()| {
        std::fs::remove_file(&file).expect("it is there");
        make();
    };
    let damages: [Damage<'_>; 7] = [
        ("readable by others", &|| set_mode(&file, 0o604)),
        ("readable by a group", &|| set_mode(&file, 0o640)),
        ("empty", &|| std::fs::write(&file, "").expect("it is ours")),
        ("cut off", &|| std::fs::write(&file, &former.expose()[..30]).expect("it is ours")),
        ("a second name", &|| drop(std::fs::hard_link(&file, outer.path().join("second")))),
        ("a link to a token", &|| {
            replaced_by(&|| {
                std::fs::write(&elsewhere, links.expose()).expect("it is ours");
                symlink(&elsewhere, &file).expect("a link");
            });
        }),
        ("a pipe", &|| {
            replaced_by(&|| nix::unistd::mkfifo(&file, Mode::from_bits_truncate(0o600)).expect("a pipe"));
        }),
    ];
    let mut seen = vec![former, links];
    for (what, damage) in damages {
        damage();
        let token = settled(&folder);
        assert!(!seen.contains(&token), "{what}");
        assert_eq!(mode(&file), 0o600, "{what}");
        assert_eq!(settled(&folder), token, "{what}: it is kept from then on");
        seen.push(token);
    }
    let kept = std::fs::read_to_string(&elsewhere).expect("it is there");
    assert_eq!(kept, links.expose(), "a link is not followed");
}

#[test]
fn a_folder_that_others_can_write_to_is_closed_to_them() {
    let outer = tempfile::tempdir().expect("a folder");
    for (given, expected) in [(0o775, 0o755), (0o777, 0o755), (0o700, 0o700)] {
        set_mode(outer.path(), given);
        settled(outer.path());
        assert_eq!(mode(outer.path()), expected);
    }
}

#[test]
fn a_group_may_read_the_file_and_nothing_else_and_a_token_it_knew_goes_with_it() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("ebb");
    let own = nix::unistd::getegid().as_raw();
    let group = TokenGroup { name: own.to_string(), number: own };
    let before = settled(&folder);
    let token = open(&folder, Some(group)).and_then(|file| file.establish(None)).expect("it is our group");
    assert_eq!(token, before, "the group is let in to what there is");
    assert_eq!((mode(&folder), mode(&folder.join(NAME))), (0o711, 0o640));
    assert_ne!(settled(&folder), token, "the group knows it");
}

#[test]
fn the_file_of_a_port_that_nobody_comes_back_to_goes_at_the_end() {
    let outer = tempfile::tempdir().expect("a folder");
    for (life, expected) in [(TokenLife::OverRestarts, true), (TokenLife::OneRun, false)] {
        let file = TokenFile::in_folder(outer.path(), NAME, None, life).expect("the folder is ours");
        file.establish(None).expect("it can be written");
        file.leave();
        assert_eq!(file.path().exists(), expected, "{life:?}");
    }
}
