"""The real command, in a process of its own."""

from __future__ import annotations

import dataclasses
import json
import os
import pty
import re
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from labeldp import (
    Channel,
    LabelRandomizer,
    LabelSpace,
    Laplace,
    Ledger,
    Prior,
    ReleaseKey,
    __version__,
    design_unbiased,
)
from labeldp import compare as compare_mechanisms
from labeldp.design import MECHANISMS

Done = subprocess.CompletedProcess[str]
SPACE = LabelSpace.integers(0, 2)
PRIOR = Prior(SPACE, [0.6, 0.25, 0.15])
DESIGN = ("design", "--integers", "0:2", "--epsilon", "1/2")
NOISE = {"FORCE_COLOR", "NO_COLOR", "COLUMNS", "GITHUB_ACTIONS", "PY_COLORS"}


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Done]:
    """Run labeldp in an empty directory; there is never a traceback and never a colour in a pipe."""

    def run(*arguments: str, **how: Any) -> Done:
        environment = {name: value for name, value in os.environ.items() if name not in NOISE}
        command = [sys.executable, "-W", "error", "-m", "labeldp", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, encoding="utf-8", check=False,
            **{"stdout": subprocess.PIPE, **how},
        )  # fmt: skip
        assert "Traceback" not in (done.stdout or "") + done.stderr
        assert "\x1b" not in (done.stdout or "") + done.stderr
        return done

    return run


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    """The channel in channel.json."""
    made = design_unbiased(PRIOR, "1/2")
    (tmp_path / "channel.json").write_text(made.to_json(), encoding="utf-8")
    return made


@pytest.fixture
def liar(tmp_path: Path, channel: Channel) -> str:
    """A file with sound geometry and a digest that fits, which claims a tenth of its epsilon."""
    (tmp_path / "liar.json").write_text(dataclasses.replace(channel, epsilon=Fraction(1, 20)).to_json())
    return "liar.json"


def succeeded(done: Done) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def record(done: Done, code: int = 0) -> dict[str, Any]:
    assert (done.returncode, done.stderr) == (code, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(done: Done, *words: str, code: int = 2) -> None:
    """One line on standard error, nothing on standard output."""
    assert done.returncode == code
    assert not done.stdout
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr), done.stderr
    assert [word for word in words if word not in done.stderr] == [], done.stderr


def test_version_and_bare_command(run: Callable[..., Done]) -> None:
    assert succeeded(run("--version")) == f"labeldp {__version__}\n"
    assert "Exit codes:" in succeeded(run())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), ["No such command", "labeldp --help"]),
        (("certify",), ["Missing argument", "labeldp certify --help"]),
        (("certify", "x", "--nothing"), ["No such option"]),
        (("audit", "x", "--draws", "many"), ["--draws"]),
        (("design", "-o", "c.json", "--integers", "0:2"), ["--epsilon"]),
    ],
)
def test_a_bad_option_is_one_line(run: Callable[..., Done], arguments: tuple[str, ...], words: list[str]) -> None:
    refused(run(*arguments), *words)


def test_design_writes_the_channel_of_the_api(run: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "prior.csv").write_text("label,probability\n2,0.15\n0,0.6\n1,0.25\n")
    shown = succeeded(run(*DESIGN, "--prior", "prior.csv", "-o", "c.json"))
    assert Channel.from_json((tmp_path / "c.json").read_text()) == design_unbiased(PRIOR, "1/2")
    for fact in ("labels", "epsilon      0.5", "outputs", "noisy loss   7.92", "worst bias", "gap", "certificate"):
        assert fact in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.json", "prior.csv"]


def test_design_as_json(run: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "prior.csv").write_text("0.6\n0.25\n0.15\n")
    found = record(run(*DESIGN, "--prior", "prior.csv", "-o", "c.json", "--json"))
    channel = design_unbiased(PRIOR, "1/2")
    assert found["epsilon"] == "0.5"
    assert found["noisy_loss"] == channel.noisy_loss(PRIOR)
    assert found["outputs"]["count"] == len(channel.outputs)
    assert found["certificate"]["digest"] == channel.digest


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_is_designed_and_certified(run: Callable[..., Done], mechanism: str) -> None:
    made = record(run(*DESIGN, "--mechanism", mechanism, "-o", "c.json", "--json"))
    checked = record(run("certify", "c.json", "--json"))
    assert checked == {"private": True, "mechanism": mechanism, **made["certificate"]}


@pytest.mark.parametrize(
    ("labels", "space"),
    [
        (("--integers", "-5:5"), LabelSpace.integers(-5, 5)),
        (("--grid", "0:0.5:6"), LabelSpace.grid(0, "0.5", 6)),
        (("--values", "5, 1,-2.5"), LabelSpace.of([-2.5, 1, 5])),
    ],
)
def test_label_sets(run: Callable[..., Done], tmp_path: Path, labels: tuple[str, str], space: LabelSpace) -> None:
    succeeded(run("design", *labels, "--epsilon", "1", "-o", "c.json"))
    made = Channel.from_json((tmp_path / "c.json").read_text())
    assert made.space == space
    assert made == design_unbiased(Prior.uniform(space), 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ["--integers", "--grid", "--values"]),
        (("--integers", "0:2", "--values", "1,2"), ["got 2"]),
        (("--integers", "0-2"), ["--integers 0-2", "0:52"]),
        (("--integers", "0:2:3"), ["--integers 0:2:3"]),
        (("--integers", "0:x"), ["'x'"]),
        (("--integers", "0:2.5"), ["whole"]),
        (("--integers", "2:0"), ["high must be greater"]),
        (("--grid", "0:1"), ["0:400:401"]),
        (("--values", "1,one"), ["'one'"]),
        (("--values", "1,1"), ["twice"]),
        (("--integers", "0:2", "--epsilon", "-1"), ["epsilon=-1"]),
        (("--integers", "0:2", "--epsilon", "much"), ["'much'"]),
        (("--integers", "0:2", "--mechanism", "magic"), ["magic", "unbiased"]),
        (("--integers", "0:2", "--prior", "missing.csv"), ["missing.csv", "No such file"]),
        (("--integers", "0:2", "--prior", "."), ["directory"]),
    ],
)
def test_a_wrong_design_is_refused(
    run: Callable[..., Done], tmp_path: Path, arguments: tuple[str, ...], words: list[str]
) -> None:
    refused(run("design", "--epsilon", "1", "-o", "c.json", *arguments), *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", ["0 probabilities for 3 labels"]),
        (b"0.5\n0.5\n", ["2 probabilities for 3 labels"]),
        (b"0.5\n0.5\n0\n0\n", ["4 probabilities for 3 labels"]),
        (b"0.5\n0.2\n0.2\n", ["add up to 0.9"]),
        (b"0.5\n-0.2\n0.7\n", ["negative"]),
        (b"0.5\nhalf\n0\n", ["line 2", "'half'"]),
        (b"0,0.5\n1,0.5\n2,0\n", ["header label,probability"]),
        (b"label,share\n0,0.5\n1,0.5\n2,0\n", ["header label,probability"]),
        (b"label,probability\n0,0.5\n1,0.5\n3,0\n", ["line 4", "label 3"]),
        (b"label,probability\n0,0.5\n1,0.5\n1,0\n", ["line 4", "twice"]),
        (b"label,probability\n0,0.5\n1,0.5\n", ["2 probabilities for 3 labels"]),
        (b"label,probability\n0,0.5\n1\n2,0.5\n", ["line 3", "1 columns"]),
        (b"0.5\n\xff\n", ["UTF-8"]),
        (b'"0.5\n', ["CSV"]),
    ],
)
def test_a_wrong_prior_is_refused(run: Callable[..., Done], tmp_path: Path, text: bytes, words: list[str]) -> None:
    (tmp_path / "prior.csv").write_bytes(text)
    refused(run(*DESIGN, "--prior", "prior.csv", "-o", "c.json"), "prior.csv", *words)


def test_an_existing_file_is_kept_unless_told(run: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text("mine")
    refused(run(*DESIGN, "-o", "c.json"), "c.json exists", "--overwrite")
    assert (tmp_path / "c.json").read_text() == "mine"
    succeeded(run(*DESIGN, "-o", "c.json", "--overwrite"))
    assert Channel.from_json((tmp_path / "c.json").read_text()).epsilon == Fraction(1, 2)


def test_a_place_that_cannot_be_written(run: Callable[..., Done], tmp_path: Path) -> None:
    refused(run(*DESIGN, "-o", "nowhere/c.json"), "nowhere/c.json", "No such file")
    (tmp_path / "folder").mkdir()
    refused(run(*DESIGN, "-o", "folder", "--overwrite"), "folder", "directory")
    refused(run("keygen", "nowhere/key"), "nowhere/key", "No such file")
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


@pytest.mark.parametrize("command", [(*DESIGN, "-o", "c.json"), ("keygen", "key")])
def test_a_write_that_fails_leaves_nothing(run: Callable[..., Done], tmp_path: Path, command: tuple[str, ...]) -> None:
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))

    refused(run(*command, preexec_fn=no_room), command[-1], "too large")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.usefixtures("channel")
@pytest.mark.parametrize("how", [(), ("--json",)])
def test_a_full_disk_behind_standard_output(run: Callable[..., Done], how: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        refused(run("certify", "channel.json", *how, stdout=full), "No space left")


def test_certify_shows_the_ratio_beside_its_bound(run: Callable[..., Done], channel: Channel) -> None:
    shown = succeeded(run("certify", "channel.json"))
    assert "ratio      1.64872" in shown
    assert "e^epsilon  1.64872" in shown
    assert channel.digest in shown


def test_certify_refuses_with_3(run: Callable[..., Done], liar: str) -> None:
    refused(run("certify", "channel.json", "--epsilon", "0.49"), "not 0.49-DP", "Worst place", code=3)
    refused(run("certify", liar), "not 0.05-DP", code=3)
    found = record(run("certify", liar, "--json"), code=3)
    assert found["private"] is False
    assert "not 0.05-DP" in found["reason"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", ["no JSON"]),
        (b"\xff\xfe", ["no JSON"]),
        (b"[" * 100_000, ["no JSON"]),
        (b"[]", ["no mechanism"]),
        (b'{"format": ["labeldp.channel"]}', ["no mechanism"]),
        (b'{"format": "labeldp.channel", "version": 9}', ["version 9"]),
        (b'{"format": "labeldp.additive", "version": 1}', ["changed"]),
    ],
)
def test_a_file_that_is_no_mechanism(run: Callable[..., Done], tmp_path: Path, text: bytes, words: list[str]) -> None:
    (tmp_path / "c.json").write_bytes(text)
    refused(run("certify", "c.json"), "c.json", *words)


def test_a_tampered_channel_is_refused(run: Callable[..., Done], tmp_path: Path, channel: Channel) -> None:
    (tmp_path / "c.json").write_text(channel.to_json().replace('"1/2"', '"1/3"'))
    refused(run("certify", "c.json"), "changed after it was written")


@pytest.mark.parametrize("command", ["certify", "audit", "ledger"])
def test_a_missing_file_and_a_directory(run: Callable[..., Done], command: str) -> None:
    refused(run(command, "missing\n.json"), "missing\\n.json")
    refused(run(command, "."))


def test_compare_is_the_comparison_of_the_api(run: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "prior.csv").write_text("probability\n0.6\n0.25\n0.15\n")
    arguments = ("compare", "--integers", "0:2", "--prior", "prior.csv", "--epsilon", "0.5", "--epsilon", "1")
    rows = record(run(*arguments, "--json"))["comparisons"]
    expected = compare_mechanisms(MECHANISMS, PRIOR, ["0.5", "1"])
    assert [(row["mechanism"], row["noisy_loss"]) for row in rows] == [(e.mechanism, e.noisy_loss) for e in expected]
    assert {row["epsilon"] for row in rows} == {"0.5", "1"}
    assert [row["times_examples"] is None for row in rows] == [e.times_examples != e.times_examples for e in expected]
    shown = succeeded(run(*arguments, "--mechanism", "laplace", "--mechanism", "unbiased"))
    assert [line.split()[0] for line in shown.splitlines() if line] == [
        "epsilon",
        "mechanism",
        "laplace",
        "unbiased",
    ] * 2


def test_keygen_makes_a_secret_file(run: Callable[..., Done], tmp_path: Path) -> None:
    for name, how in (("plain", ()), ("json", ("--json",))):
        done = run("keygen", name, *how)
        path = tmp_path / name
        secret = path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert ReleaseKey(secret).fingerprint in succeeded(done)
        for part in (secret.hex()[:16], secret.hex()[-16:], repr(secret)[2:-1], str(list(secret))[1:-1]):
            assert part not in done.stdout


def test_keygen_never_overwrites(run: Callable[..., Done], tmp_path: Path) -> None:
    succeeded(run("keygen", "key"))
    before = (tmp_path / "key").read_bytes()
    refused(run("keygen", "key"), "key exists already")
    assert (tmp_path / "key").read_bytes() == before
    (tmp_path / "link").symlink_to("nowhere")
    refused(run("keygen", "link"), "link exists already")


def test_ledger_shows_exact_amounts(run: Callable[..., Done], tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db", budget=1)
    assert record(run("ledger", "ledger.db", "--json"))["entries"] == []
    assert "none yet" in succeeded(run("ledger", "ledger.db"))
    for column, epsilon in (("weeks", "0.1"), ("weeks", "0.2"), ("[red]wage\x1b", "1/3")):
        randomizer = LabelRandomizer(SPACE, epsilon, prior=PRIOR)
        randomizer.release([0, 1, 2], ledger=ledger, dataset="census", column=column)
    found = record(run("ledger", "ledger.db", "--json"))
    weeks, wage = found["budgets"]
    assert weeks == {
        "dataset": "census", "column": "weeks", "budget": "1", "spent": "0.3", "remaining": "0.7", "releases": 2
    }  # fmt: skip
    assert (wage["spent"], wage["remaining"]) == ("1/3", "2/3")
    assert [(entry["number"], entry["epsilon"], entry["labels"]) for entry in found["entries"]] == [
        (1, "0.1", 3), (2, "0.2", 3), (3, "1/3", 3)
    ]  # fmt: skip
    shown = succeeded(run("ledger", "ledger.db"))
    assert "[red]wage\\x1b" in shown
    assert re.search(r"census +weeks +1 +0.3 +0.7 +2", shown)


def test_audit(run: Callable[..., Done], tmp_path: Path, liar: str) -> None:
    (tmp_path / "noise.json").write_text(Laplace(SPACE, 1).to_json())
    for file in ("channel.json", "noise.json"):
        found = record(run("audit", file, "--draws", "50000", "--confidence", "0.999999", "--json"))
        assert found["refuted"] is False
        assert found["lower"] <= float(Fraction(found["claimed"]))
    sure = ("--draws", "200000", "--confidence", "0.999")
    assert record(run("audit", liar, *sure, "--json"), code=3)["refuted"] is True
    done = run("audit", liar, *sure)
    assert (done.returncode, done.stderr) == (3, "")
    assert "REFUTED" in done.stdout
    refused(run("audit", "channel.json", "--draws", "10"), "draws=10")
    refused(run("audit", "channel.json", "--confidence", "1"), "confidence=1")


@pytest.mark.usefixtures("channel")
@pytest.mark.parametrize("how", [(), ("--json",)])
def test_a_reader_that_leaves_is_no_error(run: Callable[..., Done], how: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        assert run("certify", "channel.json", *how, stdout=write).stderr == ""
    finally:
        os.close(write)


@pytest.mark.usefixtures("channel")
def test_on_a_terminal_there_are_colours_and_a_bar(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in NOISE}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "80"}
    command = [sys.executable, "-m", "labeldp", "audit", "channel.json", "--draws", "2000000"]
    leader, follower = pty.openpty()
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=follower, stderr=follower) as process:
        os.close(follower)
        seen = b""
        while part := _read(leader):
            seen += part
    os.close(leader)
    assert process.returncode == 0
    assert b"drawing" in seen
    assert b"\x1b[1m" in seen
    assert "not refuted" in seen.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the other end of a terminal is closed
        return b""
