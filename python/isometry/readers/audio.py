"""Audio of either format, told apart by the first bytes, since TIMIT names both .WAV."""

from isometry._arrays import Array
from isometry.readers._file import Path_, contents
from isometry.readers.sphere import MAGIC, read_sphere
from isometry.readers.wav import read_wav


def read_audio(path: Path_) -> tuple[Array, int]:
    """Read a WAV or a NIST SPHERE file.

    Parameters
    ----------
    path
        The file, whatever its name.

    Returns
    -------
    samples : numpy.ndarray
        float64, shape (N,), N >= 1: the mean of the channels, full scale 1.
    rate : int
        Samples per second.

    Raises
    ------
    ValueError
        As for `read_wav` and `read_sphere`.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from isometry.readers import read_audio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "SA1.WAV"
    >>> _ = path.write_text("NIST_1A, but not really")
    >>> read_audio(path)
    Traceback (most recent call last):
    ...
    ValueError: path ...SA1.WAV is not a WAV file: it does not begin with RIFF ... WAVE
    """
    return read_sphere(path) if contents(path).startswith(MAGIC) else read_wav(path)
