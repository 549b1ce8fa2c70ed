"""Print a script that completes commands, options and their values in bash, zsh or fish.

  bash   spinformer completion bash > ~/.local/share/bash-completion/completions/spinformer
  zsh    spinformer completion zsh > "${fpath[1]}/_spinformer"
  fish   spinformer completion fish > ~/.config/fish/completions/spinformer.fish

A new shell has it. The script is complete in itself: pressing the tab key starts no Python. Print it again after an
update.
"""

import argparse
import shlex
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """One option of a command: its names, its help, and the values that it takes.

    values: those that may be chosen, none for any; takes_value: whether a value follows it.
    """

    names: tuple[str, ...]
    help: str
    values: tuple[str, ...]
    takes_value: bool


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=tuple(WRITERS), help="the shell that you use")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    print(WRITERS[args.shell](command_options(args.parsers())))
    return 0


def command_options(parsers: Mapping[str, argparse.ArgumentParser]) -> dict[str, list[Option]]:
    """The options of every command, from their parsers."""
    return {name: [_option(action, parser) for action in parser._actions] for name, parser in parsers.items()}


def _option(action: argparse.Action, parser: argparse.ArgumentParser) -> Option:
    """Positional arguments have no names."""
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    values = tuple(map(str, action.choices or ()))
    return Option(tuple(action.option_strings), " ".join(text.split()), values, action.nargs != 0)


def first_words(commands: Mapping[str, object]) -> dict[str, list[str]]:
    """The first word of each command, with the words that may follow it."""
    words: dict[str, list[str]] = {}
    for name in commands:
        first, _, second = name.partition(" ")
        words.setdefault(first, []).extend([second] if second else [])
    return words


def bash(commands: Mapping[str, list[Option]]) -> str:
    """A function that completes by the command before, and files where nothing else is known."""
    groups, options, values = [], [], []
    for first, seconds in first_words(commands).items():
        if seconds:
            groups.append(f"        {first}) words={shlex.quote(' '.join(seconds))} ;;")
    for name, known in commands.items():
        flags = " ".join(flag for option in known for flag in option.names)
        options.append(f"        {shlex.quote(name)}) flags={shlex.quote(flags)} ;;")
        for option in known:
            if option.values:
                listed = shlex.quote(" ".join(option.values))
                values += [f"        {shlex.quote(f'{name} {flag}')}) words={listed} ;;" for flag in option.names]
                if not option.names:
                    values.append(f"        {shlex.quote(f'{name} ')}) words={listed} ;;")
    return "\n".join(
        [
            "# bash completion for spinformer",
            "_spinformer() {",
            '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"',
            '    local name="${COMP_WORDS[1]}" depth=1 words="" flags=""',
            "    COMPREPLY=()",
            '    if [ "$COMP_CWORD" -eq 1 ]; then',
            f'        COMPREPLY=($(compgen -W {shlex.quote(" ".join(first_words(commands)))} -- "$current"))',
            "        return",
            "    fi",
            '    case "$name" in',
            *groups,
            "    esac",
            '    if [ -n "$words" ]; then',
            '        if [ "$COMP_CWORD" -eq 2 ]; then',
            '            COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "            return",
            "        fi",
            '        name="$name ${COMP_WORDS[2]}" words="" depth=2',
            "    fi",
            '    case "$name" in',
            *options,
            "    esac",
            '    if [[ "$previous" != -* ]] && [ "$COMP_CWORD" -ne $((depth + 1)) ]; then previous=-; fi',
            '    [ "$COMP_CWORD" -eq $((depth + 1)) ] && previous=""',
            '    case "$name $previous" in',
            *values,
            "    esac",
            '    if [[ "$current" == -* ]]; then words="$flags"; fi',
            '    if [ -n "$words" ]; then',
            '        COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "    else",
            '        COMPREPLY=($(compgen -f -- "$current"))',
            "    fi",
            "}",
            "complete -o filenames -F _spinformer spinformer",
        ]
    )


def zsh(commands: Mapping[str, list[Option]]) -> str:
    """What `_arguments` needs for each command."""
    lines = ["#compdef spinformer", "_spinformer() {", "  local name=$words[2] depth=2"]
    lines.append(f"  if (( CURRENT == 2 )); then compadd -- {' '.join(first_words(commands))}; return; fi")
    for first, seconds in first_words(commands).items():
        if seconds:
            lines.append(f"  if [[ $name == {first} ]]; then")
            lines.append(f"    if (( CURRENT == 3 )); then compadd -- {' '.join(seconds)}; return; fi")
            lines += ['    name="$name $words[3]" depth=3', "  fi"]
    lines += ["  shift $(( depth - 1 )) words", "  (( CURRENT -= depth - 1 ))", "  case $name in"]
    for name, known in commands.items():
        specs = [spec for option in known for spec in _zsh_specs(option)]
        quoted = " ".join(map(shlex.quote, [*specs, "*:file:_files"]))
        lines.append(f"    {shlex.quote(name)}) _arguments {quoted} ;;")
    return "\n".join([*lines, "  esac", "}", '_spinformer "$@"'])


def _zsh_specs(option: Option) -> list[str]:
    help_text = "".join(f"\\{letter}" if letter in "[]:\\" else letter for letter in option.help)
    values = f"({' '.join(option.values)})" if option.values else "_files"
    if not option.names:
        return [f"1:value:{values}"] if option.values else []
    value = f":value:{values}" if option.takes_value else ""
    return [f"{flag}[{help_text}]{value}" for flag in option.names]


def fish(commands: Mapping[str, list[Option]]) -> str:
    """One `complete` for each command and each option."""
    words = first_words(commands)
    lines = [
        "# fish completion for spinformer",
        f"complete -c spinformer -n __fish_use_subcommand -f -a {_fish(' '.join(words))}",
    ]
    for first, seconds in words.items():
        if seconds:
            seen = f"__fish_seen_subcommand_from {first}; and not __fish_seen_subcommand_from {' '.join(seconds)}"
            lines.append(f"complete -c spinformer -n {_fish(seen)} -f -a {_fish(' '.join(seconds))}")
    for name, known in commands.items():
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in name.split())
        for option in known:
            parts = ["complete -c spinformer", f"-n {_fish(seen)}"]
            parts += [f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.names]
            if option.values:
                parts.append(f"-x -a {_fish(' '.join(option.values))}")
            elif option.names and option.takes_value:
                parts.append("-r")
            if option.names:
                parts.append(f"-d {_fish(option.help)}")
            if option.names or option.values:
                lines.append(" ".join(parts))
    return "\n".join(lines)


def _fish(text: str) -> str:
    """Quoted as fish reads it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


WRITERS = {"bash": bash, "zsh": zsh, "fish": fish}
