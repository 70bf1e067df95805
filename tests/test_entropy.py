import pickle

import numpy as np
import pytest

from labeldp import IdError, KeyFormatError, ReleaseKey, SeededEntropy, SystemEntropy
from labeldp.entropy import CHUNK, Stream

KEY = ReleaseKey(bytes(range(32)))
LABELS = np.zeros(1000, dtype=np.int64)
ROWS = slice(0, 1000)


def distinct(*answers: np.ndarray) -> bool:
    """All blocks of all answers differ."""
    together = np.concatenate(answers)
    return len(np.unique(together, axis=0)) == len(together)


def test_the_system_never_repeats_itself() -> None:
    stream = SystemEntropy().stream("draw")
    assert SystemEntropy().private
    assert distinct(*(stream.blocks(ROWS, LABELS) for _ in range(5)))


def test_bits_are_balanced() -> None:
    """Each of the 128 bits is set in half of 2^17 blocks, within 5 standard errors; a bit set in 52 % would fail."""
    ids = KEY.ids(np.arange(1 << 17))
    labels = np.zeros(1 << 17, dtype=np.int64)
    for stream in (SeededEntropy(5).stream("draw"), KEY.stream("draw", ids, "name")):
        blocks = stream.blocks(slice(0, 1 << 17), labels)
        bits = np.unpackbits(blocks.view(np.uint8), axis=1).mean(axis=0)
        assert bits.shape == (128,)
        limit = 5 * 0.5 / np.sqrt(1 << 17)
        assert np.abs(bits - 0.5).max() < limit < 0.02


def test_a_seed_repeats_and_is_not_private() -> None:
    first, again, other = (SeededEntropy(seed).stream("draw").blocks(ROWS, LABELS) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert distinct(first, other, SeededEntropy(7).stream("prior").blocks(ROWS, LABELS))
    assert not SeededEntropy(7).private


def test_blocks_of_any_number() -> None:
    for count in (0, 1, CHUNK - 1, CHUNK + 1, 3 * CHUNK):
        blocks = SystemEntropy().blocks(slice(0, count), np.zeros(count, dtype=np.int64))
        assert blocks.shape == (count, 2)
        assert blocks.dtype == np.uint64


@pytest.mark.parametrize("kind", ["integer", "text", "bytes"])
def test_a_keyed_block_depends_on_the_row_alone(kind: str) -> None:
    values = {
        "integer": np.arange(-500, 500),
        "text": [f"record {i}" for i in range(1000)],
        "bytes": [bytes([i % 256, i // 256]) for i in range(1000)],
    }[kind]
    labels = np.arange(1000) % 7
    whole = KEY.stream("draw", KEY.ids(values), "name").blocks(ROWS, labels)
    order = np.random.default_rng(0).permutation(1000)
    shuffled = values[order] if kind == "integer" else [values[i] for i in order]  # type: ignore[call-overload]
    again = KEY.stream("draw", KEY.ids(shuffled), "name").blocks(ROWS, labels[order])
    np.testing.assert_array_equal(whole[order], again)
    part = KEY.stream("draw", KEY.ids(values), "name").blocks(np.array([3, 999]), labels[[3, 999]])
    np.testing.assert_array_equal(whole[[3, 999]], part)


def streams() -> list[Stream]:
    ids, other_type = KEY.ids(np.arange(1000)), KEY.ids([str(i) for i in range(1000)])
    return [
        KEY.stream("draw", ids, "name", "data", "column", "law"),
        KEY.stream("rounding", ids, "name", "data", "column", "law"),
        KEY.stream("draw", ids, "name 2", "data", "column", "law"),
        KEY.stream("draw", ids, "name", "data 2", "column", "law"),
        KEY.stream("draw", ids, "name", "data", "column 2", "law"),
        KEY.stream("draw", ids, "name", "data", "column", "law 2"),
        KEY.stream("draw", ids, "named", "ata", "column", "law"),
        KEY.stream("draw", other_type, "name", "data", "column", "law"),
        ReleaseKey(bytes(32)).stream("draw", ids, "name", "data", "column", "law"),
    ]


def test_every_part_of_the_context_changes_every_block() -> None:
    assert distinct(*(stream.blocks(ROWS, LABELS) for stream in streams()))


@pytest.mark.parametrize("stream", [streams()[0], streams()[7]], ids=["integer ids", "text ids"])
def test_label_and_attempt_change_every_block(stream: Stream) -> None:
    assert distinct(
        stream.blocks(ROWS, LABELS),
        stream.blocks(ROWS, LABELS + 1),
        stream.blocks(ROWS, LABELS, 1),
        stream.blocks(ROWS, LABELS + 1, 1),
        stream.blocks(ROWS, LABELS, 2),
    )


def test_what_does_not_fit_the_block_is_refused() -> None:
    stream = streams()[0]
    with pytest.raises(OverflowError):
        stream.blocks(ROWS, LABELS + (1 << 32), 1)
    with pytest.raises(OverflowError):
        stream.blocks(ROWS, LABELS, 1 << 31)


def test_the_digest_of_rows_knows_no_order_but_every_change() -> None:
    values, labels = np.arange(5000), np.random.default_rng(0).normal(size=5000)
    order = np.random.default_rng(1).permutation(5000)
    digest = KEY.digest_of_rows(KEY.ids(values), labels, "name")
    assert digest == KEY.digest_of_rows(KEY.ids(values[order]), labels[order], "name")
    changed = labels.copy()
    changed[17] = np.nextafter(changed[17], 9)
    swapped = labels.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    others = [
        KEY.digest_of_rows(KEY.ids(values), changed, "name"),
        KEY.digest_of_rows(KEY.ids(values), swapped, "name"),
        KEY.digest_of_rows(KEY.ids(values[:-1]), labels[:-1], "name"),
        KEY.digest_of_rows(KEY.ids(values), labels, "other name"),
        ReleaseKey(bytes(32)).digest_of_rows(KEY.ids(values), labels, "name"),
    ]
    assert len({digest, *others}) == 6


def test_minus_zero_is_zero() -> None:
    ids = KEY.ids(np.arange(2))
    assert KEY.digest_of_rows(ids, np.array([0.0, 1.0])) == KEY.digest_of_rows(ids, np.array([-0.0, 1.0]))


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (["a", 1], "all integers, all strings or all bytes; these hold int, str"),
        ([1.5, 2.5], "float"),
        ([], "nothing"),
        (np.array([1 << 63], dtype=np.uint64), "pass such ids as strings"),
    ],
)
def test_bad_ids(ids: object, says: str) -> None:
    with pytest.raises(IdError, match=says):
        KEY.ids(ids)  # type: ignore[arg-type]


@pytest.mark.parametrize("secret", [b"", b"short", bytes(33), "text" * 8, None])
def test_bad_keys(secret: object) -> None:
    with pytest.raises(KeyFormatError, match="32 bytes"):
        ReleaseKey(secret)  # type: ignore[arg-type]


def test_a_key_shows_nothing_of_itself() -> None:
    key = ReleaseKey.new()
    assert key.secret.hex() not in repr(key)
    assert str(key) == f"<ReleaseKey {key.fingerprint}>"
    assert key.fingerprint != ReleaseKey.new().fingerprint
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(key)


def test_a_stream_shows_no_subkey() -> None:
    stream = KEY.stream("draw", KEY.ids(np.arange(2)), "a")
    assert repr(stream) == "_KeyedStream()"
