"""What people expect of a command: quiet when told, plain in a pipe, outputs checked first, paths told from hub ids."""

import io
import json
import subprocess
import sys

import pytest

pytest.importorskip("transformers")

from spinformer._base.progress import is_quiet, progress, progress_bar, remark, silence
from spinformer.cli import COMMANDS, completion, main, options
from spinformer.cli.commands import command_parsers
from spinformer.data.sources import load_texts
from spinformer.models import hub
from spinformer.models.loading import load_classifier
from tests.tiny import bert, nli_classifier, save_rows, tokenizer

WORDS = ("a man runs", "the dog sleeps outside", "two cats")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A classifier of pairs, and one of single texts."""
    from transformers import BertForSequenceClassification

    root = tmp_path_factory.mktemp("habits")
    single = BertForSequenceClassification(bert(num_labels=2, id2label={0: "negative", 1: "positive"}))
    for name, model in {"pairs": nli_classifier(), "single": single}.items():
        model.save_pretrained(root / name)
        tokenizer().save_pretrained(root / name)
    return root


@pytest.fixture
def plain(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "single.txt").write_text("".join(f"{text}\n" for text in WORDS))
    (tmp_path / "pairs.txt").write_text("".join(f"{text}\tnot a man\n" for text in WORDS))
    return tmp_path


def one_line(capsys, words, *messages):
    capsys.readouterr()
    assert main(list(map(str, words))) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    for message in messages:
        assert message in line


class TestShown:
    def test_quiet_leaves_the_results(self, folders, plain, capsys):
        words = ["explain", str(folders / "single"), WORDS[0], "--passes", "8", "--device", "cpu", "--html", "one.html"]
        assert main(words) == 0
        loud = capsys.readouterr().out
        assert main([*words, "--quiet"]) == 0
        assert capsys.readouterr().out == loud.removesuffix("report: one.html\n") != loud
        assert not is_quiet()

    def test_remarks_and_bars(self, capsys, monkeypatch):
        monkeypatch.setattr(sys, "stderr", Terminal())
        with silence():
            remark("nothing")
            assert list(progress(range(3), "work")) == [0, 1, 2]
            assert progress_bar(3, "work").disable
        assert sys.stderr.getvalue() == ""
        remark("said")
        assert capsys.readouterr().out == "said\n"
        with progress_bar(3, "work") as bar:
            assert not bar.disable
        assert "work" in sys.stderr.getvalue()

    def test_no_codes_in_a_file(self, capsys):
        with progress_bar(3, "work", leave=True) as bar:
            bar.update()
        assert list(progress(range(3), "work")) == [0, 1, 2]
        assert capsys.readouterr().err == ""

    def test_colours_are_for_terminals(self, monkeypatch):
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
        assert options.takes_color(Terminal())
        assert not options.takes_color(io.StringIO())
        monkeypatch.setenv("NO_COLOR", "1")
        assert not options.takes_color(Terminal())

    def test_verbose_shows_the_trace_of_what_was_expected(self, plain, capsys):
        words = ["explain", "no/such/folder", "a"]
        one_line(capsys, words, "no/such/folder")
        assert main([*words, "--verbose"]) == 2
        assert "Traceback (most recent call last)" in capsys.readouterr().err


class TestPlainLines:
    def test_texts_and_pairs(self, plain):
        texts = load_texts("single.txt", labelled=False)
        assert (tuple(texts.first), texts.second, texts.labels) == (WORDS, None, None)
        texts = load_texts("pairs.txt", labelled=False)
        assert (tuple(texts.first), texts.second) == (WORDS, ["not a man"] * 3)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("a\nb\tc\n", "bad.txt:2: expected one text, as before, without a tab; got 2 texts"),
            ("a\tb\n\nc\n", "bad.txt:3: expected two texts, a tab between; got 1 text: 'c'"),
            ("a\tb\tc\n", "bad.txt:1: expected a text, or two with a tab between; got 3 texts"),
            ("\n\n", "bad.txt has no rows"),
        ],
    )
    def test_what_does_not_fit_is_named(self, plain, content, message):
        (plain / "bad.txt").write_text(content)
        with pytest.raises(ValueError, match="^" + message):
            load_texts("bad.txt", labelled=False)

    def test_labels_are_missing(self, plain):
        with pytest.raises(ValueError, match="no label column"):
            load_texts("single.txt")

    def test_commands_of_one_text(self, folders, plain, capsys):
        model = str(folders / "single")
        assert main(["explain", model, "single.txt", "--output", "all.jsonl", "--passes", "8", "--device", "cpu"]) == 0
        assert [json.loads(line)["text"] for line in (plain / "all.jsonl").read_text().splitlines()] == list(WORDS)
        capsys.readouterr()
        assert main(["predict", model, "single.txt", "--device", "cpu"]) == 0
        assert [json.loads(line)["label"] in ("negative", "positive") for line in capsys.readouterr().out.splitlines()]
        scored = ["evaluate", model, "single.txt", "--explanations", "--methods", "random", "--seeds", "0"]
        assert main([*scored, "--device", "cpu", "--quiet"]) == 0
        sizes = ["--heads", "2", "--dim", "8", "--hidden", "8", "--readout", "8", "--held-out", "1", "--epochs", "1"]
        assert main(["ground", model, "single.txt", "--output", "game", "--batch-size", "2", *sizes]) == 0

    @pytest.mark.parametrize("command", ["explain", "predict", "ground", "evaluate"])
    def test_one_text_where_two_are_compared(self, folders, plain, command, capsys):
        more = {"ground": ["--held-out", "1", "--output", "game"], "evaluate": ["--explanations"]}.get(command, [])
        one_line(capsys, [command, folders / "pairs", "single.txt", "--device", "cpu", *more], "single.txt", "tab")

    def test_a_missing_file_is_no_text(self, folders, plain, capsys):
        one_line(capsys, ["explain", folders / "single", "texts.csv"], "no file texts.csv")


class TestOutputs:
    @pytest.mark.parametrize(
        "words",
        [
            ["explain", "MODEL", "a man", "--html", "FILE/one.html"],
            ["explain", "MODEL", "a man", "--figures", "FILE"],
            ["explain", "MODEL", "a man", "--output", "FOLDER"],
            ["explain", "MODEL", "single.txt", "--output", "FILE/all.jsonl"],
            ["predict", "MODEL", "single.txt", "--output", "FOLDER"],
            ["ground", "MODEL", "single.txt", "--output", "FILE/game"],
            ["evaluate", "MODEL", "rows.jsonl", "--name", "x", "--results", "FILE"],
            ["evaluate", "MODEL", "rows.jsonl", "--output", "FILE/figures"],
            ["evaluate", "MODEL", "rows.jsonl", "--explanations", "--output", "FILE/x.json"],
            ["evaluate", "MODEL", "rows.jsonl", "--explanations", "--exact", "2", "--tables", "FOLDER"],
            ["train", "nli", "--output", "FILE/model"],
            ["train", "attractor", "--output", "FOLDER"],
            ["retrieve", "NETWORK", "--output", "FILE/x"],
            ["demo", "--output", "FILE/x"],
        ],
        ids=lambda words: " ".join(word for word in words if word.islower() or word.startswith("-")),
    )
    def test_are_checked_before_anything_is_loaded(self, words, plain, capsys):
        """MODEL and NETWORK are not there: the output is refused before they are looked for."""
        (plain / "FILE").write_text("")
        (plain / "FOLDER").mkdir()
        save_rows(plain / "rows.jsonl", 20)
        one_line(capsys, words, words[-2], words[-1].split("/")[0])
        assert (plain / "FILE").read_text() == ""
        assert not list((plain / "FOLDER").iterdir())

    def test_nothing_is_left_behind(self, tmp_path):
        options.check_output_folder("--output", tmp_path / "a" / "b")
        options.check_output_file("--output", tmp_path / "c.json")
        assert not list(tmp_path.iterdir())

    def test_what_cannot_be_written(self):
        with pytest.raises(OSError, match=r"^--html: cannot write to /proc/none/x.html \("):
            options.check_output_file("--html", options.Path("/proc/none/x.html"))


class TestFolderOrHub:
    def test_no_network_is_one_line_at_once(self, plain, monkeypatch):
        import huggingface_hub

        class Session:
            def head(self, address, timeout):
                assert timeout <= 5
                raise OSError("no route")

        monkeypatch.setattr(huggingface_hub, "get_session", Session)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        with pytest.raises(ConnectionError, match=r"no folder some/model here, and https://.* \(no route\)$"):
            load_classifier("some/model")
        (plain / "checkpoints" / "small-nli").mkdir(parents=True)
        with pytest.raises(
            ConnectionError, match=r"no folder checkpoint/small-nli here \(is it checkpoints/small-nli\?"
        ):
            load_classifier("checkpoint/small-nli")

    def test_paths_are_not_asked_for_on_the_hub(self, plain, monkeypatch):
        monkeypatch.setattr(hub, "_check_reachable", lambda source: pytest.fail(source))
        (plain / "checkpoints" / "small-nli").mkdir(parents=True)
        for path in ("checkpoints/smal-nli", "./small", "../a/b", "/a/b", "~/a", "a/b/c", "a/", "single.txt"):
            with pytest.raises(FileNotFoundError, match="expected a folder with a saved model at"):
                hub.check_source(path)
        with pytest.raises(FileNotFoundError, match=r"is it checkpoints/small-nli\?"):
            hub.check_source("checkpoints/smal-nli")

    def test_names_on_the_hub_are(self, plain, monkeypatch):
        asked = []
        monkeypatch.setattr(hub, "_check_reachable", asked.append)
        for name in ("bert-base-uncased", "google-bert/bert-base-uncased"):
            hub.check_source(name)
        assert asked == ["bert-base-uncased", "google-bert/bert-base-uncased"]


@pytest.fixture(scope="module")
def known():
    return completion.command_options(command_parsers())


class TestCompletion:
    def test_every_command_and_option(self, known):
        assert set(known) == set(COMMANDS)
        flags = {flag for option in known["explain"] for flag in option.names}
        assert {"--method", "--html", "--quiet", "--verbose", "-h"} <= flags

    @pytest.mark.parametrize(
        ("line", "answers"),
        [
            ("ex", {"explain"}),
            ("train ", {"nli", "attractor"}),
            ("train nli --objec", {"--objective"}),
            ("train nli --objective ", {"plain", "grounded"}),
            ("explain model --method shapley", {"shapley", "shapley-sampling"}),
            ("completion ", {"bash", "zsh", "fish"}),
            ("explain single", {"single.txt"}),
        ],
    )
    def test_bash(self, known, line, answers, plain):
        words = ["spinformer", *line.split(" ")]
        call = f"COMP_WORDS=({' '.join(repr(word) for word in words)}) COMP_CWORD={len(words) - 1}; _spinformer"
        script = f'{completion.bash(known)}\n{call}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        assert set(done.stdout.split()) == answers

    def test_zsh_and_fish_name_every_command_and_option(self, known):
        zsh, fish = completion.zsh(known), completion.fish(known)
        for name, options_of in known.items():
            (line,) = [one for one in zsh.splitlines() if one.lstrip().startswith((f"{name})", f"'{name}')"))]
            for flag in (flag for option in options_of for flag in option.names):
                assert flag in line
                short = f"-l {flag[2:]} " if flag.startswith("--") else f"-s {flag[1:]} "
                assert short in fish, flag
        assert completion._fish("it's") == r"'it\'s'"
