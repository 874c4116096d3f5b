"""Copies in the data of a task: nothing that tests has been trained on, whatever its name, its format and its place."""

import gzip
import os
import shutil
from itertools import chain

import numpy as np
import pytest

from cli_runs import TINY
from isometry.cli.data import files
from isometry.cli.tasks.characters import PASSAGE, Characters, repeated
from isometry.cli.tasks.digits import Digits
from isometry.cli.tasks.next_frame import NextFrame
from isometry.cli.tasks.pixels import Pixels
from isometry.cli.tasks.recordings import split
from reader_files import idx, sphere, wav
from task_data import images, recordings, sound, timit


def copied(path, other):
    other.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, other)


COPIES = {
    "the ending twice": lambda _, path: copied(path, path.with_name(path.name + ".wav")),
    "another name": lambda _, path: copied(path, path.with_name("z" + path.name)),
    "another folder": lambda folder, path: copied(path, folder / "again" / "/".join(path.parts[-3:])),
    "in TRAIN": lambda folder, path: copied(path, folder / "TRAIN" / "copies" / f"{'-'.join(path.parts[-3:])}"),
    "in TEST": lambda folder, path: copied(path, folder / "TEST" / "copies" / f"{'-'.join(path.parts[-3:])}"),
    "a link": lambda _, path: path.with_name("link.wav").symlink_to(path),
    "a hard link": lambda _, path: os.link(path, path.with_name("link.wav")),
    "another format": lambda _, path: path.with_name(path.name + ".wav").write_bytes(
        wav(path.read_bytes()[1024:], rate=16000)
    ),
    "two channels": lambda _, path: path.with_name("two.wav").write_bytes(
        wav(np.repeat(np.frombuffer(path.read_bytes()[1024:], "<i2"), 2).tobytes(), rate=16000, channels=2)
    ),
}


def contents(part):
    return [audio.tobytes() for _, audio in part]


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("every", [1, 3])
def test_a_recording_and_its_copies_count_once(tmp_path, name, every):
    """With folders TRAIN and TEST, as TIMIT has them, and without."""
    for folder in (timit(tmp_path / "timit", 9, 4), timit(tmp_path / "plain", 13, 0)):
        paths = files(folder)
        before = [contents(part) for part in split(str(folder))]
        chosen = paths[1::2] if (name, every) == ("in TEST", 1) else paths[::every]  # some have to be left
        for path in chosen:
            COPIES[name](folder, path)
        parts = [contents(part) for part in split(str(folder))]
        together = list(chain(*parts))
        assert len(set(together)) == len(together) == len(paths) and set(together) == set(chain(*before))
        if name != "in TEST":
            assert sorted(parts[2]) == sorted(before[2]), "what tests still does"
        task = NextFrame(batch=1, length=500, data=str(folder))
        assert f"{len(chosen)} of {len(files(folder))} recordings" in task.note


def test_what_is_no_recording(isometry, tmp_path):
    """Hidden files, what macOS adds to archives, folders and pipes named as recordings, loops of links, links to
    nothing, unreadable names: the run is the same without them, and copies are said."""
    folder = recordings(tmp_path / "data")
    expected = split(str(folder))
    (folder / "._0.wav").write_bytes(b"Mac OS X")
    (folder / ".hidden").mkdir()
    (folder / "__MACOSX" / "sub").mkdir(parents=True)
    for path in (folder / ".hidden/0.wav", folder / "__MACOSX/0.wav", folder / "__MACOSX/sub/._0.wav"):
        path.write_bytes(b"no audio")
    (folder / "x.wav").mkdir()
    os.mkfifo(folder / "pipe.wav")
    (folder / "nothing.wav").symlink_to("nowhere.wav")
    (folder / "loop").symlink_to(folder)
    (folder / "notes.txt").write_text("no audio")
    for found, part in zip(split(str(folder)), expected, strict=True):
        assert [name for name, _ in found] == [name for name, _ in part]
    (folder / "x.wav" / os.fsdecode(b"caf\xe9.WAV")).write_bytes((folder / "5.wav").read_bytes())
    status, out, err = isometry("train", "next-frame", "--model", "rnn", *TINY, "--data", folder, "--iterations", 1)
    assert (status, err) == (0, []) and "1 of 13 recordings are left out: copies of others" in out


def test_too_few_recordings_without_their_copies(refused, tmp_path):
    for k in range(9):
        (tmp_path / f"{k}.wav").write_bytes(wav(sound(np.random.default_rng(k // 5))))
    line = refused("train", "next-frame", "--model", "rnn", *TINY, "--data", ".")
    assert "has 2 different files *.wav, 3 or more are needed" in line


@pytest.mark.parametrize("others", [[0], [1, 5, 7], range(30), range(0, 60, 2)])
def test_an_image_is_in_one_part(tmp_path, others):
    """Those to train on of which the test has copies, with labels of their own; a dark image in all parts."""
    folder = images(tmp_path / "i", 60, 40)
    whole = Pixels(data=str(folder), batch=1)
    train, test = ((folder / f"{name}-images-idx3-ubyte") for name in ("train", "t10k"))
    pixels, tested = (
        np.frombuffer(path.read_bytes()[16:], np.uint8).reshape(-1, 4, 4).copy() for path in (train, test)
    )
    others = list(others)
    pixels[others] = tested[: len(others)]
    pixels[[59, 58]] = pixels[40]  # the last five validate
    train.write_bytes(idx(pixels))
    task = Pixels(data=str(folder), batch=1)
    parts = [{image.tobytes() for image in part[0]} for part in (task.training, task.validation, task.test_part)]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])
    assert set.union(*parts) == {image.tobytes() for image in (*pixels, *tested)}
    assert np.array_equal(task.test_part[0], whole.test_part[0])
    left = 60 - len(task.training[1]) - len(task.validation[1])
    assert left >= len(others) and task.note.startswith(f"{left} images are left out")
    labels = np.concatenate([whole.training[1], whole.validation[1]])
    pairs = {(image.tobytes(), label) for image, label in zip(pixels, labels, strict=True)}
    for part in (task.training, task.validation):
        assert {(image.tobytes(), label) for image, label in zip(*part, strict=True)} <= pairs


def test_images_of_the_test_alone(refused, tmp_path):
    folder = images(tmp_path / "i", 36, 36)
    shutil.copy(folder / "train-images-idx3-ubyte", folder / "t10k-images-idx3-ubyte")
    options = ("--hidden", 6, "--batch", 3, "--threads", 1, "--data", folder)
    assert "--data leave no image for training" in refused("train", "pixels", "--model", "rnn", *options)


def test_digits_have_no_copies():
    assert Digits(batch=1, seed=0).note == ""


NAMES = [f"train-images{dot}idx3-ubyte{ending}" for dot in "-." for ending in ("", ".gz")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("inner", [None, *NAMES])
@pytest.mark.parametrize("beside", [False, True])
def test_mnist_as_others_pack_it(tmp_path, name, inner, beside):
    """A folder of each name, empty or with a file of each name in it, and beside it a file of another name."""
    if inner is None and not beside:
        return
    folder = images(tmp_path / "i")
    expected = Pixels(data=str(folder), batch=1).training
    data = (folder / NAMES[0]).read_bytes()
    (folder / NAMES[0]).unlink()
    (folder / name).mkdir()
    places = [folder / name / inner] if inner is not None else []
    places += [folder / next(other for other in NAMES if other != name)] if beside else []
    for path in places:
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    found = Pixels(data=str(folder), batch=1).training
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_a_folder_of_mnist_without_the_file(refused, tmp_path):
    folder = images(tmp_path / "i")
    (folder / NAMES[0]).unlink()
    (folder / NAMES[2]).mkdir()
    line = refused("train", "pixels", "--model", "rnn", "--data", folder)
    assert f"{folder / NAMES[2]} is not a regular file" in line


@pytest.mark.parametrize("length", [1, PASSAGE - 1, PASSAGE, 3 * PASSAGE, 1000])
def test_the_share_of_a_text_that_is_written_twice(length):
    """All but the ends of a passage are found, wherever it begins, and none is made up."""
    letters = [chr(k) for k in range(33, 3000)]
    rng = np.random.default_rng(length)
    text, other = ("".join(rng.choice(letters, 1500)) for _ in range(2))
    assert repeated(text, other) == 0
    for start in (0, 1, 17, 500):
        found = repeated(text, other[:300] + text[start : start + length] + other[300:])
        assert length - 2 * PASSAGE < round(found * (1500 + length)) <= length


def test_a_text_that_holds_itself(isometry, tmp_path):
    letters = np.random.default_rng(0).choice(list("abcdefghijklmnop"), 3000)
    once = "".join(letters)
    for name, text in (("once", once), ("twice", 2 * once), ("end", once + once[:300] + once[:300])):
        (tmp_path / name).write_text(text)
        task = Characters(length=5, batch=2, data=str(tmp_path / name))
        assert bool(task.note) == (name != "once"), name
    status, out, err = isometry("train", "characters", "--model", "rnn", *TINY, "--data", "twice", "--iterations", 1)
    assert (status, err) == (0, []) and "100% of the text that validates and tests is also in the rest" in out


def test_copies_of_sphere_files_at_another_rate_are_others(tmp_path):
    """The same numbers at another rate are another sound."""
    data = sound(np.random.default_rng(0), 3000)
    for k in range(4):
        (tmp_path / f"{k}.wav").write_bytes(sphere(data, sample_rate=f"-i {8000 + 1000 * k}"))
    assert sum(map(len, split(str(tmp_path)))) == 4
