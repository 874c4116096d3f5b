"""Text in UTF-8."""

from isometry.readers._file import Path_, contents, decoded, wrong


def read_text(path: Path_) -> str:
    """Read a text file.

    Parameters
    ----------
    path
        The file, in UTF-8, with or without a byte order mark.

    Returns
    -------
    str
        At least one character; ends of lines are newlines.

    Raises
    ------
    ValueError
        If the file is empty, or not text in UTF-8.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from isometry.readers import read_text
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = path.write_bytes(b"one\\r\\ntwo")
    >>> read_text(path)
    'one\\ntwo'
    """
    text = decoded(path, contents(path))
    if not text:
        wrong(path, "holds a byte order mark and nothing else")
    return text.replace("\r\n", "\n").replace("\r", "\n")
