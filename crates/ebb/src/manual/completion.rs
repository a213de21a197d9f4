//! The scripts by which shells complete commands, and the names of revisions where a command takes one.
//!
//! What is generated from the command line knows words that never change. Names of revisions are asked of the
//! running `ebb up` (`ebb names`), by a few lines that each shell gets in addition.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;

const NAME: &str = "ebb";

/// The commands whose first argument is a revision.
const WITH_NAMES: [&str; 8] =
    ["get", "explain", "forecast", "ledger", "logs", "delete", "restart", "rollback"];

/// The identifiers of these arguments; the `target` of `ebb restart` may also be a part of `ebb up`.
const REVISION_ARGUMENTS: [&str; 2] = ["revision", "target"];

/// The script by which a shell completes commands.
pub(crate) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => script + &bash_names(),
        Shell::Fish => script + &fish_names(),
        Shell::Zsh => with_zsh_names(&script),
        // Elvish and PowerShell complete commands and options alone, as any later shell does at first.
        Shell::Elvish | Shell::PowerShell | _ => script,
    }
}

fn bash_names() -> String {
    let commands = WITH_NAMES.join("|");
    format!(
        r#"
_ebb_with_names() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}"
    case "${{COMP_WORDS[1]}}" in
        {commands})
            if [[ $COMP_CWORD -eq 2 && $current != -* ]]; then
                COMPREPLY=($(compgen -W "$(ebb names 2>/dev/null)" -- "$current"))
                return 0
            fi
            ;;
    esac
    _ebb "$@"
}}
complete -F _ebb_with_names -o bashdefault -o default ebb
"#
    )
}

fn fish_names() -> String {
    let commands = WITH_NAMES.join(" ");
    format!(
        "\ncomplete -c ebb -n \"__fish_seen_subcommand_from {commands}\" -f -a \"(ebb names 2>/dev/null)\"\n"
    )
}

/// The arguments that are revisions ask for names where the generated script offers files.
fn with_zsh_names(script: &str) -> String {
    const NAMES: &str =
        "_ebb_revisions() { local -a names; names=(${(f)\"$(ebb names 2>/dev/null)\"}); compadd -a names }\n";
    let lines = script.lines().map(|line| {
        let argument = line.strip_prefix("':").map(|line| line.strip_prefix(':').unwrap_or(line));
        let argument = argument.and_then(|line| line.split_once(' '));
        let is_revision = argument.is_some_and(|(name, _)| REVISION_ARGUMENTS.contains(&name));
        if is_revision { line.replace(":_default'", ":_ebb_revisions'") } else { line.to_owned() }
    });
    let mut lines: Vec<String> = lines.collect();
    // Behind the line by which zsh knows the file.
    lines.insert(1.min(lines.len()), NAMES.to_owned());
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_asks_for_names_where_a_command_takes_a_revision() {
        for (shell, expected) in [
            (Shell::Bash, "complete -F _ebb_with_names"),
            (Shell::Fish, "__fish_seen_subcommand_from get explain"),
            (Shell::Zsh, "_ebb_revisions'"),
        ] {
            let script = script(shell);
            assert!(script.contains(expected) && script.contains("ebb names"), "{shell}: {script}");
        }
        let zsh = script(Shell::Zsh);
        let restart = zsh.lines().find(|line| line.starts_with("':target "));
        assert!(restart.is_some_and(|line| line.contains(":_ebb_revisions'")), "{restart:?}");
        assert!(zsh.starts_with("#compdef ebb\n_ebb_revisions()"));
    }

    #[test]
    fn every_command_with_names_takes_a_revision_first() {
        let mut all = Cli::command();
        all.build();
        for name in WITH_NAMES {
            let command = all.find_subcommand(name).expect(name);
            let first = command.get_positionals().next().map(|argument| argument.get_id().as_str());
            assert!(first.is_some_and(|first| REVISION_ARGUMENTS.contains(&first)), "{name}: {first:?}");
        }
    }
}
